"""What is said about a full disk."""

from __future__ import annotations

from headgate.flow.disk_sentence import ALL_WELL, DiskFacts, disk_sentence, room_text


def test_a_disk_with_room_is_not_worth_a_word() -> None:
    assert disk_sentence(DiskFacts(free_bytes=1, size_bytes=2)) == ALL_WELL


def test_a_full_disk_with_what_is_known_of_it() -> None:
    assert disk_sentence(DiskFacts(full_s=0.2)) == (
        "the disk is full: what producers send waits for room, consumers go on"
    )
    facts = DiskFacts(full_s=35.0, free_bytes=1_000, size_bytes=2_000_000, segment_bytes=65_536)
    assert disk_sentence(facts) == (
        "the disk is full: what producers send waits for room, for 35 s now, consumers go on; "
        "1,000 of 2,000,000 bytes are free, the log goes on with 65,536"
    )


def test_room_is_told_when_it_is_known() -> None:
    assert not room_text(DiskFacts(free_bytes=1))
    assert room_text(DiskFacts(free_bytes=1, size_bytes=2, segment_bytes=3)).endswith("with 3")
