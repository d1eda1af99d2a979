"""A segment while its records are checked."""

from __future__ import annotations

import pytest

from headgate.ledger.tools.checked_segment import CheckedSegment, SegmentRole
from headgate.ledger.tools.footer_check import FooterCheck


@pytest.mark.parametrize(
    ("is_replayed", "has_footer", "reads_records"),
    [(True, True, True), (True, False, True), (False, True, False), (False, False, True)],
)
def test_a_start_reads_records_after_the_checkpoint_and_where_the_footer_is_of_no_use(
    is_replayed: bool, has_footer: bool, reads_records: bool
) -> None:
    role = SegmentRole(3, is_replayed=is_replayed, has_later=True, follows=7)
    footer = FooterCheck(is_found=has_footer, is_usable=has_footer)
    segment = CheckedSegment(role, footer, b"", "0000000000000003.log")
    assert segment.reads_records is reads_records
