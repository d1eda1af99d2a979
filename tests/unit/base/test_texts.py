"""Figures as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.texts import (
    about_text,
    duration,
    encodable,
    number,
    percent,
    printable,
    size_text,
    time_text,
    without_secrets,
)
from headgate.base.units import GIB, KIB, MIB


def test_numbers_and_shares() -> None:
    assert [number(value) for value in (3, 3.25, 99.98, 1234.5, 0.04)] == [
        "3", "3.2", "100", "1,234", "0",
    ]  # fmt: skip
    assert percent(0.966) == "97 %"


def test_durations_have_one_unit() -> None:
    assert [duration(value) for value in (5.4, 119, 120, 7200)] == ["5 s", "119 s", "2 min", "2 h"]


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        (0, "0 B"),
        (-4e6, "-3.8 MiB"),
        (900, "900 B"),
        (1_023, "1,023 B"),
        (KIB, "1 KiB"),
        (1.5 * MIB, "1.5 MiB"),
        (512.25 * MIB, "512 MiB"),
        (MIB - 1, "1 MiB"),
        (10 * GIB, "10 GiB"),
        (2_500 * GIB, "2.4 TiB"),
        (2_000_000 * GIB, "1,953 TiB"),
    ],
)
def test_sizes_are_reported_in_binary_units(size_bytes: float, expected: str) -> None:
    assert size_text(size_bytes) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.2, "0 s"),
        (45, "45 s"),
        (119.4, "119 s"),
        (1_560, "26 min"),
        (3_569, "59 min"),
        (3_599, "1 h"),
        (3_601, "1 h"),
        (5_400, "1 h 30 min"),
        (7_200, "2 h"),
        (7_440, "2 h 4 min"),
        (100_000, "27 h 47 min"),
        (2 * 86_400, "2 d"),
        (273_600, "3 d 4 h"),
    ],
)
def test_times_are_reported_in_at_most_two_units(seconds: float, expected: str) -> None:
    assert time_text(seconds) == expected


@given(st.integers(0, 1 << 62))
def test_a_size_is_reported_to_a_twentieth(size_bytes: int) -> None:
    figure, unit = size_text(size_bytes).split(" ")
    factor = KIB ** ("B", "KiB", "MiB", "GiB", "TiB").index(unit)
    told = float(figure.replace(",", "")) * factor
    assert abs(told - size_bytes) <= size_bytes / 20


@given(st.floats(0, 600) | st.floats(0, 400_000) | st.floats(0, 1e9))
def test_a_time_is_reported_to_half_of_its_smaller_unit(seconds: float) -> None:
    units_s = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
    words = time_text(seconds).split(" ")
    told_s = sum(int(n) * units_s[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
    smaller_s = 1 if seconds < 119.5 else 60 if seconds < 172_799.5 else 3_600
    assert abs(told_s - seconds) <= smaller_s / 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (1_560.0, "26 min"),
        (5_369.0, "89 min"),
        (5_371.0, "1.5 h"),
        (11_160.0, "3.1 h"),
        (86_400.0, "24 h"),
    ],
)
def test_a_time_that_is_not_known_well_has_one_unit(seconds: float, text: str) -> None:
    assert about_text(seconds) == text


def test_names_cannot_control_the_terminal() -> None:
    assert printable("a\x1b[31mb\u202ec\n") == "a\ufffd[31mb\ufffdc\ufffd"


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    assert encodable("a\ud800b\udfff") == "a?b?"
    assert encodable("Grüße \U0001f600\n") == "Grüße \U0001f600\n"


def test_secrets_are_taken_out_whatever_their_case_the_longest_first() -> None:
    said = "S3CRET.example refuses czNjcmV0s3cret and s3cret"
    shown = without_secrets(said, ["s3cret", "", "czNjcmV0s3cret"])
    assert shown == "***.example refuses *** and ***"
    assert without_secrets("a.c and abc", ["a.c"]) == "*** and abc"
