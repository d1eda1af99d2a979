"""The page of ``headgate explain --storage``."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner

from headgate.base.units import MIB
from headgate.cli.explain.command import explain_command
from headgate.cli.explain.text import explain_text

LOG: dict[str, Any] = {
    "log": "main",
    "fileBytes": 15_200_000,
    "liveBytes": 1_100_000,
    "pinnedBytes": 13_000_000,
    "deadBytes": 0,
    "indexBytes": 900_000,
    "openBytes": 199_000,
    "checkpointBytes": 1_000,
    "segments": 21,
    "segmentsDead": 0,
    "messageBytesWritten": 52_300_000,
    "writeAmplification": 1.124,
}
SLOW: dict[str, Any] = {
    "topic": "persistent://acme/shop/slow",
    "heldBytes": 3_780,
    "pinnedBytes": 1_180_000,
    "freesBytes": 1_220_000,
    "segments": 19,
    "lastPublish": "2026-11-23T15:06:42.000Z",
    "sentence": "subscription s has not acknowledged 20 messages",
}
NEW: dict[str, Any] = {
    **SLOW, "topic": "acme/shop/new", "pinnedBytes": 0, "freesBytes": 0, "segments": 0,
    "lastPublish": None,
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "broker": "localhost:8080",
    "at": "2026-11-23T15:06:48.000Z",
    "started": "2026-11-22T10:00:00.000Z",
    "logs": [LOG, {**LOG, "log": "telemetry", "segments": 1, "writeAmplification": None}],
    "topicsTotal": 5,
    "topics": [SLOW, NEW],
}


def test_a_page_of_80_columns() -> None:
    text = explain_text(ANSWER, 80, color=False)
    assert (
        dedent("""\
        Log: 14.5 MiB in 21 segments, for 1 MiB of retained messages
            1 MiB     retained    records of retained messages
            12.4 MiB  pinned      records that nothing needs, in segments with retained
                                  messages
        """)
        in text
    )
    assert "Telemetry log: 14.5 MiB in 1 segment, for" in text
    assert (
        "49.9 MiB of messages came since the start; for each byte of them the log has written 1.12 "
        "bytes." in " ".join(text.split())
    )
    assert text.count("came since the start") == 1
    assert text.endswith(
        dedent("""\
         1. acme/shop/slow
            Pins 1.1 MiB beyond its own 3.7 KiB in 19 sealed segments; deleting it frees
            1.2 MiB at once.
            Subscription s has not acknowledged 20 messages.
            The last message was published at 2026-11-23 15:06:42 UTC.

         2. acme/shop/new
            Pins 0 B beyond its own 3.7 KiB; deleting it frees nothing yet, as its
            messages are in the segment being written.
            Subscription s has not acknowledged 20 messages.
            The last message was published before the broker's start at 2026-11-22
            10:00:00 UTC.

        3 more, which keep less; --count shows more.
        """)
    )


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    assert all(len(line) <= width for line in explain_text(ANSWER, width, color=False).split("\n"))


def test_a_broker_without_messages() -> None:
    text = explain_text({**ANSWER, "topics": [], "topicsTotal": 0}, 80, color=False)
    assert text.endswith("No topic holds a message.\n")


FORECAST: dict[str, Any] = {
    "filling": "filling",
    "sentence": "the disk is full in 3 h 20 min at the growth of the last 10 min, 11.4 MiB/s",
    "growthBytesPerS": 12_000_000.0,
    "topics": [
        {**SLOW, "growthBytesPerS": 9_000_000.0},
        {**SLOW, "topic": "acme/shop/noise", "growthBytesPerS": 110_000.0},
    ],
}


def test_a_disk_that_fills_up() -> None:
    text = explain_text({**ANSWER, "forecast": FORECAST}, 80, color=False)
    assert (
        dedent("""\

        The disk is full in 3 h 20 min at the growth of the last 10 min, 11.4 MiB/s.
            acme/shop/slow grows by 8.6 MiB/s and holds 3.7 KiB: subscription s has not
            acknowledged 20 messages.

        Topics that keep most beyond""")
        in text
    )
    assert "noise" not in text


@pytest.mark.parametrize("filling", ["unknown", "steady", "not_filling"])
def test_topics_that_grow_do_not_matter_on_a_disk_that_does_not_fill_up(filling: str) -> None:
    forecast = {**FORECAST, "filling": filling, "sentence": "the disk does not fill up"}
    text = explain_text({**ANSWER, "forecast": forecast}, 80, color=False)
    assert "\nThe disk does not fill up.\n" in text
    assert "grows by" not in text


def test_it_takes_no_topic() -> None:
    result = CliRunner().invoke(explain_command, ["orders", "--storage"])
    assert result.exit_code == 2
    assert "it takes no TOPIC" in result.output


def test_an_answer_of_an_agent_has_sizes_and_says_what_it_lacks() -> None:
    holder = dict.fromkeys(SLOW) | {
        "topic": SLOW["topic"], "heldBytes": 3_780, "sentence": SLOW["sentence"],
    }  # fmt: skip
    answer = ANSWER | {
        "broker": "production", "started": None, "logs": None, "forecast": None, "topicsTotal": 1,
        "topics": [holder], "evidence": "inferred", "notSeen": ["the disks of the cluster"],
    }  # fmt: skip
    assert explain_text(answer, 80, color=False) == dedent("""\
        production, 2026-11-23 15:06:48 UTC: what takes the disk

        Topics that keep most:

         1. acme/shop/slow
            Stores 3.7 KiB.
            Subscription s has not acknowledged 20 messages.

        Not seen:
            The disks of the cluster.
        """)
    empty = explain_text(answer | {"topics": []}, 80, color=False)
    assert "The disks of the cluster." in empty


@pytest.mark.parametrize(
    ("bytes_max", "ending"),
    [
        (None, "1 MiB; its producers are refused (near the limit on the broker's memory)"),
        (
            2 * MIB,
            "1 MiB of 2 MiB; its producers are refused (headgateMaxStoragePerTenantMB or near the "
            "limit on the broker's memory)",
        ),
    ],
)
def test_a_tenant_that_is_refused_is_shown_though_it_has_no_bound(
    bytes_max: int | None, ending: str
) -> None:
    """Near the limit on its memory the broker refuses the only tenant as well."""
    tenant = {"tenant": "acme", "bytes": MIB, "bytesMax": bytes_max, "isFull": True}
    text = explain_text({**ANSWER, "tenants": [tenant]}, 200, color=False)
    assert f"acme: {ending} " in " ".join(text.split())
    plain = {**tenant, "bytesMax": None, "isFull": False}
    assert "acme:" not in explain_text({**ANSWER, "tenants": [plain]}, 200, color=False)
