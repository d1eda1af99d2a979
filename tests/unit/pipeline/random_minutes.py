"""Random rows of ``intervals`` of one subscription, with nulls and equal values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE
from headgate.pipeline.tables.intervals import EVICTED_BY, EXPIRED_BY
from headgate.record.fields import STATE_FIELD_NAMES
from tests.unit.pipeline.play import T0, S

START = datetime(2025, 11, 21, 10, tzinfo=UTC)

COUNTS = st.sampled_from([None, 0, 1, 600, 1_200, 5_999, 6_000, 90_000])
LIMIT = st.sampled_from(
    [
        (None, None, None, None),
        (0, None, S, "topic policy"),
        (100, None, S, "topic policy"),
        (100, None, None, "namespace policy a/b"),
        (6_000, None, 60 * S, "topic policy"),
        (200, 10_000, S, "topic policy"),
        (None, 20_000, S, None),
        (150, None, S, "topic policy" + ABOVE_PUBLISH_RATE),
        (250, 9_000, S, "topic policy" + ABOVE_PUBLISH_RATE),
        (None, None, S, "topic policy" + ABOVE_PUBLISH_RATE),
    ]
)
QUOTA = st.sampled_from(
    [
        *[(None, None, None)] * 3,
        ("size", 1 << 20, "topic policy"),
        ("size", 1 << 20, None),
        ("time", 30 * S, "namespace policy a/b"),
    ]
)
TTL = st.sampled_from(
    [*[(None, None)] * 3, (60 * S, "topic policy"), (3_600 * S, None), (60 * S, "namespace a/b")]
)
CELLS = st.dictionaries(
    st.sampled_from(STATE_FIELD_NAMES),
    st.sampled_from([None, 0, 10 * S, 29 * S, 30 * S, 31 * S, 60 * S]),
    max_size=4,
)
OF_SUBSCRIPTION = {
    "cluster": "c",
    "topic": "persistent://a/b/t",
    "partition": None,
    "subscription": "s",
    "incarnation": 1,
}


@st.composite
def minute(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """The minute of that number."""
    begin = T0 + 60 * S * number
    from_ns = begin + draw(st.sampled_from([0, 0, 0, 20 * S]))
    to_ns = begin + draw(st.sampled_from([60 * S, 60 * S, 45 * S]))
    row: dict[str, Any] = {
        **OF_SUBSCRIPTION,
        "date": START.date(),
        "hour": (START + timedelta(minutes=number)).hour,
        "minute": START + timedelta(minutes=number),
        "broker": draw(st.sampled_from(["b1", "b2"])),
        "evidence": draw(st.sampled_from([None, MEASURED, MEASURED, INFERRED])),
        "from_ns": from_ns,
        "to_ns": to_ns,
        "covered_ns": draw(st.sampled_from([0, 1, to_ns - from_ns, to_ns - from_ns, 70 * S])),
        "oldest_age_max_ns": draw(st.sampled_from([None, S // 4, S, 2 * S, *[60 * S] * 5])),
        "permits": draw(st.sampled_from([None, 0, -3, 500])),
        "consumers": draw(st.sampled_from([None, 0, 1])),
        **draw(CELLS),
        **dict(zip(EVICTED_BY, draw(QUOTA), strict=True)),
        **dict(zip(EXPIRED_BY, draw(TTL), strict=True)),
    }
    for name in (
        *("appended", "rewound", "acked", "skipped", "expired", "evicted", "msgs_out", "bytes_out"),
        *("backlog_messages_start", "backlog_messages", "delayed_start", "delayed"),
        *("unacked_start", "unacked"),
    ):
        row[name] = draw(COUNTS)
    for level in ("subscription", "topic", "broker"):
        for part, value in zip(
            ("messages", "bytes", "period_ns", "source"), draw(LIMIT), strict=True
        ):
            row[f"limit_{level}_{part}"] = value
    return row


@st.composite
def minutes_of_one(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some minutes in order of time, with holes between them; many follow upon another alike."""
    numbers = sorted(draw(st.sets(st.integers(0, 9), min_size=1, max_size=8)))
    rows: list[dict[str, Any]] = []
    for number in numbers:
        row = draw(minute(number))
        if rows and draw(st.booleans()):
            limits = {name: value for name, value in rows[-1].items() if name.startswith("limit_")}
            states = {name: rows[-1].get(name) for name in STATE_FIELD_NAMES}
            row |= limits | states
        rows.append({**dict.fromkeys(STATE_FIELD_NAMES), **row})
    return rows
