"""What the records of a log tell of its topics, and what damage costs them."""

from __future__ import annotations

from headgate.ledger.format.records import ACCEPT, KIND_ACCEPT, KIND_TRIM, ORDINALS, TRIM
from headgate.ledger.tools.checked_segment import CheckedSegment, SegmentRole
from headgate.ledger.tools.findings import CostKind, Finding, Report
from headgate.ledger.tools.footer_check import FooterCheck
from headgate.ledger.tools.log_contents import LogContents
from headgate.ledger.tools.walk import Piece

NAME = "0000000000000004.log"


def contents() -> tuple[Report, LogContents]:
    """A log with topic 1, which has entries 0 to 9; topic 2 is deleted."""
    report = Report()
    found = LogContents(report, None, [1])
    for ordinal in range(10):
        found.topic(1).found(ordinal, (4, 100 * ordinal + 64), 100 * ordinal + 164)
    return report, found


def segment() -> CheckedSegment:
    role = SegmentRole(4, is_replayed=True, has_later=False, follows=0)
    return CheckedSegment(role, FooterCheck(), b"", NAME)


def control(found: LogContents, kind: int, payload: bytes) -> None:
    found.control(segment(), Piece(2_000, 2_100, kind, payload=payload), (4, 2_000))


def damage(report: Report, found: LogContents, number: int, ordinal: int) -> Finding:
    finding = report.add(NAME, 100 * ordinal + 64, 100, "a message has a wrong checksum")
    found.topic(number).damaged[ordinal] = finding
    return finding


def test_released_messages_and_those_of_deleted_topics_are_notes() -> None:
    report, found = contents()
    released, deleted = damage(report, found, 1, 2), damage(report, found, 2, 5)
    control(found, KIND_TRIM, TRIM.pack(1, 0, 4))
    found.finish({4})
    assert report.damage == []
    assert released.what.endswith("; the message was released before")
    assert deleted.what.endswith("; its topic is deleted")


def test_a_doubt_before_an_entry_is_a_note_once_it_is_accepted() -> None:
    for accepted in ([], [(7, 7)]):
        report, found = contents()
        hole = report.add(NAME, 700, 10, "no readable record")
        found.note_sequence_doubt(1, 7, hole)
        rows = b"".join(ORDINALS.pack(*row) for row in accepted)
        if accepted:
            control(found, KIND_ACCEPT, ACCEPT.pack(1, len(accepted)) + rows)
        found.finish({4})
        assert hole.is_damage is not bool(accepted)
        assert [cost.kind for cost in hole.costs] == ([] if accepted else [CostKind.MAY_BE_LOST])


def test_a_place_that_may_hide_entries_costs_topics_without_later_records() -> None:
    report, found = contents()
    before, behind = (report.add(NAME, at, 10, "no readable record") for at in (300, 5_000))
    found.note_hole((4, 300), before, entries=True)
    found.note_hole((4, 5_000), behind, entries=True)
    found.finish({4})
    assert before.costs == []
    assert [(cost.kind, cost.first) for cost in behind.costs] == [(CostKind.MAY_BE_LOST, 10)]
