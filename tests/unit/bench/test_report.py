"""A table says honestly what was met and what was not."""

from __future__ import annotations

import math
import random

import pytest

from bench.report import Table, median_interval, number, quantile


def test_every_figure_has_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("Speed")
    table.add("peer", "1.00 us")
    table.check("ours", 2.0, "times", 2.0)
    table.check("theirs", 2.01, "times", 2.0, note="rounds 1.90 to 2.30")
    table.aim("wish", 16.0, "us", 15.0)
    table.check_least("fast", 50.0, "M/s", 50.0)
    table.check_least("slow", 49.9, "M/s", 50.0)
    table.print()
    title, _, *lines = capsys.readouterr().out.splitlines()
    assert title == "Speed"
    assert [" ".join(line.split()) for line in lines[:6]] == [
        "peer 1.00 us",
        "ours 2.00 times <= 2.00 times pass",
        "theirs 2.01 times (rounds 1.90 to 2.30) <= 2.00 times MISS",
        "wish 16.0 us aim 15.0 us not met",
        "fast 50.0 M/s >= 50.0 M/s pass",
        "slow 49.9 M/s >= 50.0 M/s MISS",
    ]


def test_numbers_have_three_digits() -> None:
    assert [number(value) for value in (0.1234, 12.34, 1234.5)] == ["0.12", "12.3", "1,234"]


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(100)]
    assert quantile(values, 0.99) == 99
    assert quantile(values, 0.5) == 50
    assert quantile([7.0], 0.99) == 7


def test_few_disturbed_values_do_not_widen_the_interval_of_a_median() -> None:
    values = [0.4 + step / 1_000 for step in range(95)]
    low, high = median_interval([*values, 90.0, 70.0, -50.0, 80.0, 60.0])
    assert 0.43 < low < 0.45 < high < 0.47


def test_the_interval_of_a_median_holds_it_in_nineteen_of_twenty_samples() -> None:
    chance = random.Random(5)
    samples = [[chance.expovariate(1) for _ in range(60)] for _ in range(2_000)]
    held = sum(low <= math.log(2) <= high for low, high in map(median_interval, samples))
    assert 0.94 < held / len(samples) < 0.98
    assert median_interval([2.0, 1.0, 3.0]) == (1.0, 3.0)
