"""Figures of subjects, for tests of what is made of them."""

from __future__ import annotations

from headgate.agent.figures import SubjectFigures
from headgate.flow.account.account import Cell
from headgate.record.codec import Value
from headgate.record.fields import STATE_FIELD_NAMES

S = 10**9
TOPIC = "persistent://acme/orders/paid"
WALL = 1_763_719_200 * S
"""At monotonic 0."""


def subscription(
    at_s: int,
    *,
    since_s: int = 0,
    topic: str = TOPIC,
    name: str = "billing",
    owner: str = "b1:8080",
    cell: Cell = Cell.NO_CONSUMER,
    **values: Value,
) -> SubjectFigures:
    """A subscription that was in one state since ``since_s``."""
    found: dict[str, Value] = {
        "appended": 100 * at_s, "msgs_out": 0, "bytes_out": 0, "acked": 0, "skipped": 0,
        "rewound": 0, "expired": 0, "evicted": 0, "redelivered": 0,
        "backlog_messages": 100 * at_s, "unacked": 0, "permits": 0, "consumers": 0,
        "oldest_age_ns": (at_s - since_s) * S, "type": "Shared",
    }  # fmt: skip
    found |= dict.fromkeys(STATE_FIELD_NAMES, 0)
    found[STATE_FIELD_NAMES[cell]] = (at_s - since_s) * S
    return SubjectFigures(topic, name, since_s * S, at_s * S, owner, found | values)


def topic(
    at_s: int, *, name: str = TOPIC, owner: str = "b1:8080", **values: Value
) -> SubjectFigures:
    """A topic to which 100 messages a second are published."""
    found: dict[str, Value] = {"msgs_in": 100 * at_s, "bytes_in": 1_000 * at_s}
    return SubjectFigures(name, None, 0, at_s * S, owner, found | values)
