"""Tests of the bench of the longest turn."""

from __future__ import annotations

from bench.longest_turn import longest_by_name
from bench.turn_admin import requests_of_round
from bench.turn_clients import Load


def test_the_brokers_lines_give_the_longest_turn_of_each_kind_of_work() -> None:
    lines = [
        "DEBUG headgate.turns: the loop was held for 30.1 ms by a sweep",
        "INFO headgate.app: something else for 99.0 ms by nobody",
        "DEBUG headgate.turns: the loop was held for 80.0 ms (40.5 ms of CPU) by t1234/stats; 9",
        "DEBUG headgate.turns: the loop was held for 26.0 ms (21.0 ms of CPU) by t4567/stats",
        "DEBUG headgate.turns: the loop was held for 25.5 ms by a sweep",
    ]
    assert list(longest_by_name(lines).items()) == [
        ("tN/stats", (80.0, 40.5, 2, "9")),
        ("a sweep", (30.1, 0.0, 2, "")),
    ]


def test_each_round_of_administrators_is_another_one() -> None:
    assert requests_of_round(1, 1_000) != requests_of_round(2, 1_000)


def test_a_load_is_one_line() -> None:
    line = Load(6650, 10, 2, 1, 100, 0, 1).line()
    assert line.count(b"\n") == 1
    assert b'"port": 6650' in line
