from __future__ import annotations

from headgate.wire import limits


def test_a_frame_may_hold_a_message_of_the_largest_size_and_its_head() -> None:
    assert limits.frame_bytes_max(1_024_000) == 1_034_240
    assert (
        limits.frame_bytes_max(limits.MESSAGE_BYTES_MAX_DEFAULT) == limits.FRAME_BYTES_MAX_DEFAULT
    )
