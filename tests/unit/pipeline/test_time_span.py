"""Times of ``--since`` and ``--until``."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InputError
from headgate.pipeline.time_span import (
    Span,
    instant,
    iso_text,
    minute_text,
    parse_duration,
    parse_span,
    parse_time,
    since_epoch_us,
)

NOW_NS = 1_795_255_200_000_000_000


@pytest.mark.parametrize(
    ("text", "before_now_s"),
    [("30s", 30), ("15m", 900), ("2h", 7_200), (" 1d ", 86_400), ("1.5h", 5_400)],
)
def test_an_age(text: str, before_now_s: int) -> None:
    assert parse_time(text, NOW_NS, "--at") == NOW_NS - before_now_s * 1_000_000_000


@pytest.mark.parametrize(
    "text", ["2026-11-21T10:00:00Z", "2026-11-21T12:00:00+02:00", "2026-11-21 10:00:00.000+00:00"]
)
def test_an_instant_with_offset(text: str) -> None:
    assert parse_time(text, 0, "--at") == NOW_NS


@pytest.mark.parametrize("text", ["", "yesterday", "2x", "-2h", "2026-11-21", "2026-11-21T10:00"])
def test_everything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InputError, match=r"^--at '.* or an age, such as 30s, 15m, 2h or 1d, is"):
        parse_time(text, NOW_NS, "--at")


def test_an_instant_that_is_read_again() -> None:
    assert iso_text(NOW_NS + 1_500) == "2026-11-21T10:00:00.000001+00:00"
    assert parse_time(iso_text(NOW_NS), 0, "--at") == NOW_NS


def test_an_instant_as_text() -> None:
    assert (
        instant(parse_time("2026-11-21T12:00:00.9+02:00", 0, "--at")) == "2026-11-21 10:00:00 UTC"
    )


@given(us=st.integers(0, 4_000_000_000_000_000), offset_minutes=st.integers(-1439, 1439))
def test_an_instant_is_exact_to_the_microsecond(us: int, offset_minutes: int) -> None:
    seconds, rest = divmod(us, 1_000_000)
    zone = timezone(timedelta(minutes=offset_minutes))
    at = datetime.fromtimestamp(seconds, zone).replace(microsecond=rest)
    assert since_epoch_us(at) == us


def test_a_minute_as_text() -> None:
    assert (
        minute_text(parse_time("2026-11-21T12:00:59.9+02:00", 0, "--at")) == "2026-11-21 10:00 UTC"
    )


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("15m", 900), ("1.5h", 5_400)])
def test_a_duration(text: str, seconds: int) -> None:
    assert parse_duration(text, "--fail-within") == seconds * 1_000_000_000


@pytest.mark.parametrize("text", ["", "1", "h", "-1h", "2026-11-21T10:00:00Z"])
def test_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^--fail-within '.*such as 30s, 15m, 2h or 1d"):
        parse_duration(text, "--fail-within")


def test_a_range() -> None:
    assert parse_span(None, None, NOW_NS) == Span()
    assert parse_span("2h", "1h", NOW_NS) == Span(NOW_NS - 7_200 * 10**9, NOW_NS - 3_600 * 10**9)


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        ("1h", "2h", "--until '2h'"),
        ("1h", "1h", "--until '1h'"),
        ("2099-01-01T00:00Z", None, "now"),
    ],
)
def test_an_empty_range_is_refused(since: str, until: str | None, said: str) -> None:
    with pytest.raises(InputError, match=f"does not lie before {said}"):
        parse_span(since, until, NOW_NS)


def test_one_error_lists_both_wrong_ends() -> None:
    with pytest.raises(InputError, match=r"^--since '2x' is no time: .*\n--until '3' is no time: "):
        parse_span("2x", "3", NOW_NS)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "200000000d"])
def test_a_time_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="lies outside 1970 to 2262"):
        parse_time(text, NOW_NS, "--at")
