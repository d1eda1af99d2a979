"""Wildcards of granted roles, against the plain rule."""

from __future__ import annotations

import tracemalloc

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headgate.metadata.grants import ACTIONS, NamespaceGrants, TopicGrants, in_order
from headgate.metadata.name_totals import NameTotals
from headgate.policy.wildcard_grants import WildcardGrants
from tests.unit.work_meter import bytecodes

NAMES = st.text("ab*", min_size=1, max_size=6)
ACTION_SETS = st.frozensets(st.sampled_from(ACTIONS[:2]), min_size=1).map(in_order)


def matches(role: str, pattern: str) -> bool:
    """The rule: ``*`` at the end or beginning stands for any text."""
    return (pattern.endswith("*") and role.startswith(pattern[:-1])) or (
        pattern.startswith("*") and role.endswith(pattern[1:])
    )


@given(st.dictionaries(NAMES, ACTION_SETS, max_size=12), NAMES)
def test_a_pattern_is_found_exactly_if_one_matches(
    roles: dict[str, tuple[str, ...]], role: str
) -> None:
    row, wildcards = NamespaceGrants(roles=roles), WildcardGrants()  # type: ignore[arg-type]
    for action in ACTIONS[:2]:
        matching = {each for each in roles if action in roles[each] and matches(role, each)}
        for _ in range(2):
            found = wildcards.find(row, role, action)
            assert bool(found) == bool(matching)
            assert not found or found in matching


def test_what_is_kept_of_a_row_ends_with_it() -> None:
    wildcards = WildcardGrants()
    rows = [TopicGrants(roles={"a*": ("produce",)}) for _ in range(3)]
    for row in rows:
        assert wildcards.find(row, "app", "produce") == "a*"
    assert wildcards.rows_count == 3
    del row, rows[1:]
    assert wildcards.rows_count == 1
    assert wildcards.find(rows[0], "app", "consume") == ""


def test_a_refusal_by_a_thousand_patterns_costs_no_more_than_by_one() -> None:
    wildcards = WildcardGrants()

    def row_of(count: int) -> NamespaceGrants:
        names = [name for i in range(count) for name in (f"app-{i}*", f"*-{i}")]
        return NamespaceGrants(roles=dict.fromkeys(names, ("produce",)))

    small, large = row_of(1), row_of(500)
    for row in (small, large):
        assert wildcards.find(row, "stranger", "produce") == ""
    assert bytecodes(lambda: wildcards.find(large, "stranger", "produce")) <= bytecodes(
        lambda: wildcards.find(small, "stranger", "produce")
    )


def test_patterns_take_little_more_than_the_roles_that_a_tenant_is_charged_with() -> None:
    """Each action had copies of its own of each role, without its ``*``."""
    roles = [f"*{'x' * 500}{number:08}*" for number in range(1_000)]
    body = msgspec.json.encode({"roles": dict.fromkeys(roles, ACTIONS)})
    row, wildcards = msgspec.json.decode(body, type=NamespaceGrants), WildcardGrants()
    tracemalloc.start()
    try:
        for action in ACTIONS:
            assert wildcards.find(row, "stranger", action) == ""
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < NameTotals().bytes_of("acme/shop", row) / 4
