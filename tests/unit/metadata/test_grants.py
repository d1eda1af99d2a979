"""What a role may do, as a value."""

from __future__ import annotations

from headgate.metadata.grants import ACTIONS, in_order, with_role


def test_actions_are_in_pulsars_order_and_each_once() -> None:
    assert in_order(frozenset({"consume", "produce"})) == ("produce", "consume")
    assert in_order(frozenset(ACTIONS)) == ACTIONS
    assert "packages" not in ACTIONS


def test_the_actions_of_a_role_are_replaced_and_none_remove_it() -> None:
    roles = with_role({}, "a", frozenset({"produce"}))
    roles = with_role(roles, "b", frozenset({"sinks"}))
    assert with_role(roles, "a", frozenset({"consume"})) == {"a": ("consume",), "b": ("sinks",)}
    assert with_role(roles, "b", frozenset()) == {"a": ("produce",)}
    assert with_role(roles, "c", frozenset()) == roles
