"""The order of the namespaces of watchers: turns of tenants, rests, those that wait no more."""

from __future__ import annotations

import random

from headgate.base.names import NamespaceName
from headgate.broker.watched_names import WatchedNamespace
from headgate.broker.watched_turns import RESTED_MAX, DueNamespaces, NamespaceTurns


def of(tenant: str, local: str = "ns", rests_until_s: float = 0.0) -> WatchedNamespace:
    watched = WatchedNamespace(NamespaceName(tenant, local))
    watched.rests_until_s = rests_until_s
    return watched


def test_tenants_take_turns() -> None:
    turns = NamespaceTurns()
    many, few = [of("a", f"{number}") for number in range(3)], [of("b"), of("c")]
    for each in (*many, *few, many[0]):
        turns.add(each)
    turns.discard(many[1])
    turns.discard(many[1])
    taken = []
    while turns:
        taken.append(turns.take())
    assert taken == [many[0], *few, many[2]]
    assert turns.take() is None


def test_those_that_rest_wait_for_the_end_of_their_rest() -> None:
    due = DueNamespaces()
    resting, rested, gone = of("a", rests_until_s=5.0), of("b"), of("c", rests_until_s=1.0)
    for each in (resting, rested, gone, resting):
        due.add(each, 0.0)
    assert due.discard(gone)
    assert not due.discard(gone)
    assert due.take(0.0) is rested
    assert due.take(4.9) is None
    assert due
    assert due.first_rests_until_s == 5.0
    assert due.are_any_rested(5.0)
    assert due.take(5.0) is resting
    assert not due


def test_of_very_many_whose_rest_is_over_each_look_finds_some() -> None:
    due = DueNamespaces()
    for number in range(2 * RESTED_MAX):
        due.add(of("a", f"{number}", rests_until_s=1.0), 0.0)
    assert len([due.take(1.0) for _ in range(2 * RESTED_MAX)]) == 2 * RESTED_MAX
    assert not due


def test_random_stories_lose_none() -> None:
    chance = random.Random(7)
    for _ in range(200):
        due, now_s, expected = DueNamespaces(), 0.0, set[WatchedNamespace]()
        known = [of(chance.choice("abc"), f"{number}") for number in range(12)]
        for _ in range(100):
            now_s += chance.random()
            one = chance.choice(known)
            if chance.random() < 0.5:
                if one not in expected:
                    one.rests_until_s = now_s + chance.choice((0.0, 1.0, 5.0))
                due.add(one, now_s)
                expected.add(one)
            elif chance.random() < 0.3:
                assert due.discard(one) == (one in expected)
                expected.discard(one)
            else:
                taken = due.take(now_s)
                rested = {each for each in expected if each.rests_until_s <= now_s}
                assert (taken in rested) if rested else taken is None
                if taken is not None:
                    expected.remove(taken)
        assert bool(due) == bool(expected)
