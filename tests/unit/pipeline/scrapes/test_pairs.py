"""Growth of counters, also after a restart of the broker."""

from __future__ import annotations

import pytest

from headgate.pipeline.scrapes.pairs import Counters, ScrapePair, difference, whole_level
from headgate.pipeline.scrapes.reading import Scrape, TopicName


def test_growth_of_a_missing_counter_is_unknown() -> None:
    counters = Counters({"a": 5.0, "b": 1.0}, {"a": 7.0, "c": 1.0}, restarted=False)
    assert counters.growth("a") == (0, 2)
    assert counters.growth("a", 1_000) == (0, 2_000)
    assert counters.growth("b") is counters.growth("c") is None
    assert (counters.amount("a"), counters.amount("b")) == (2, 0)


@pytest.mark.parametrize("value", [1e30, 1e308, 9.223372036854776e18, -1e30])
def test_values_out_of_range_are_unknown(value: float) -> None:
    assert whole_level({"a": value}, "a") is None
    assert whole_level({"a": value}, "a", 10**9) is None
    for before, after in ((value, 1.0), (1.0, value)):
        counters = Counters({"a": before}, {"a": after}, restarted=False)
        assert counters.growth("a") is None
        assert 0 <= counters.account_ns(["a"])[0] <= 10**18


def test_states_without_samples_have_zero_time() -> None:
    counters = Counters({"a": 0.5, "b": 9.0}, {"a": 2.0, "b": 1.0, "c": 3.0}, restarted=False)
    assert counters.account_ns(["a", "b", "c", "d"]) == [1_500_000_000, 10**9, 3 * 10**9, 0]
    anew = Counters({"a": 0.5}, {"a": 2.0}, restarted=True)
    assert anew.account_ns(["a"]) == [2 * 10**9]


@pytest.mark.parametrize(
    ("before", "after", "restarted"),
    [
        ({"started_s": 1.0}, {"started_s": 1.0}, False),
        ({"started_s": 1.0}, {"started_s": 2.0}, True),
        ({}, {"started_s": 2.0}, False),
    ],
)
def test_a_restart_is_a_new_start_time(
    before: dict[str, float], after: dict[str, float], restarted: bool
) -> None:
    pair = ScrapePair("b", Scrape(before), Scrape(after), 3, 10)
    assert (pair.restarted, pair.elapsed_ns) == (restarted, 7)


def test_a_difference_omits_unknown_amounts() -> None:
    name = TopicName("c", "t", 3)
    found = difference(name, {"x": (0, 4), "y": None}, {"level": 1}, {"level": 2}, evidence="e")
    assert found.same == {"cluster": "c", "topic": "t", "partition": 3, "evidence": "e"}
    assert (found.first, found.second) == ({"level": 1, "x": 0}, {"level": 2, "x": 4})


def test_minus_one_means_no_value() -> None:
    assert whole_level({"a": -1.0}, "a") is whole_level({}, "a") is None
    assert whole_level({"a": 0.0015}, "a", 10_000) == 15
