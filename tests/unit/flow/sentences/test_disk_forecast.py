"""What is said about a disk that fills up, or does not."""

from __future__ import annotations

import pytest

from headgate.flow.disk_forecast import DiskForecast, Filling, Growth
from headgate.flow.sentences.disk_forecast import FillingFacts, filling_sentence
from headgate.flow.topic_growth import TopicGrowth

MB = 1_000_000.0
GROWTH = Growth(600.0, 10.0 * MB, 1.0 * MB, 1.0 * MB)
FILLING = DiskForecast(Filling.FILLING, full_in_s=12_000.0, growth=GROWTH)
TOPICS = tuple(
    TopicGrowth(f"persistent://acme/shop/{name}", number, rate * MB, 600.0)
    for number, (name, rate) in enumerate((("orders", 6.0), ("clicks", 2.5), ("logs", 0.3)))
)


def said(forecast: DiskForecast = FILLING, **facts: object) -> str:
    return filling_sentence(FillingFacts(forecast, **facts))  # type: ignore[arg-type]


def test_topics_and_what_else_grows() -> None:
    assert said(full_in_s=12_000.0, topics=TOPICS) == (
        "the disk is full in 3 h 20 min at the growth of the last 10 min, 11.4 MiB/s: "
        "5.7 MiB/s by acme/shop/orders, 2.4 MiB/s by acme/shop/clicks, 1.4 MiB/s by other topics, "
        "977 KiB/s by records that no topic needs, beside retained ones, "
        "977 KiB/s by files outside the logs; then producers wait for room, and consumers continue"
    )


def test_small_parts_are_left_out_and_what_shrinks_is_named() -> None:
    growth = Growth(600.0, 10.0 * MB, -0.1 * MB, -4.0 * MB)
    text = said(DiskForecast(Filling.FILLING, full_in_s=60.0, growth=growth), full_in_s=60.0)
    assert text.startswith(
        "the disk is full in 60 s at the growth of the last 10 min, 5.6 MiB/s: "
        "9.5 MiB/s by retained messages, less 3.8 MiB/s of files outside the logs; "
    )


def test_a_backup_that_holds_the_files() -> None:
    growth = Growth(600.0, 0.0, 9.0 * MB, 0.0)
    forecast = DiskForecast(Filling.FILLING, full_in_s=60.0, growth=growth)
    assert (
        "8.6 MiB/s by records that no topic needs, which are freed when the running backup ends;"
        in said(forecast, full_in_s=60.0, is_held_for_backup=True)
    )


def test_at_most_three_topics_are_named() -> None:
    topics = tuple(TopicGrowth(f"t{at}", at, 2.0 * MB, 600.0) for at in range(5))
    text = said(full_in_s=60.0, topics=topics)
    assert "by t2, 3.8 MiB/s by other topics" in text
    assert "t3" not in text


@pytest.mark.parametrize(
    ("forecast", "facts", "text"),
    [
        (FILLING, {"full_s": 0.0}, "the disk is full: producers wait for room, consumers"),
        (FILLING, {"full_s": 21.0}, "the disk is full: producers wait for room, for 21 s now, con"),
        (FILLING, {"full_in_s": 0.2}, "the disk is full any moment at the growth of the last 10"),
        (
            DiskForecast(),
            {},
            "whether the disk fills up is not known yet: the file system has not told its free",
        ),
        (
            DiskForecast(known_in_s=45.0),
            {},
            "whether the disk fills up is known in 45 s: the broker measures its growth for two",
        ),
        (
            DiskForecast(Filling.STEADY, growth=GROWTH, amplitude_bytes=134_000_000),
            {},
            "the disk does not fill up: what was written in the last 10 min was freed again, up to "
            "128 MiB at a time",
        ),
        (
            DiskForecast(Filling.NOT_FILLING, growth=Growth(600.0, 0.0, 0.0, 0.0)),
            {},
            "the disk does not fill up: it did not grow in the last 10 min",
        ),
        (
            DiskForecast(Filling.NOT_FILLING, growth=Growth(240.0, 900.0, 0.0, 0.0)),
            {},
            "the disk is not full within 7 d at the growth of the last 4 min, 900 B/s: 900 B/s by "
            "retained messages",
        ),
    ],
)
def test_each_state(forecast: DiskForecast, facts: dict[str, object], text: str) -> None:
    found = said(forecast, **facts)
    assert found.startswith(text)
    assert "\n" not in found
    assert not found.endswith(".")
