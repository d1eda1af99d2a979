"""Messages come through pipes whole, and an end of the other side is noticed."""

from __future__ import annotations

import errno
import os
import threading
from array import array

import pytest

from headgate.app.segment_copying.messages import Failed, Moved, NewIndex, receive, send
from headgate.base.errors import CorruptionError, StorageError


def test_messages_come_as_they_were_sent_whatever_their_size() -> None:
    requests, answers = os.pipe()
    sent = [Moved(3, 4), [NewIndex(array("I", range(300_000)), None)], "step"]
    thread = threading.Thread(target=lambda: [send(answers, each) for each in sent])
    thread.start()
    assert [receive(requests) for _ in sent] == sent
    thread.join()
    os.close(answers)
    with pytest.raises(EOFError):
        receive(requests)
    os.close(requests)


def test_a_message_to_nobody_is_refused() -> None:
    requests, answers = os.pipe()
    os.close(requests)
    with pytest.raises(BrokenPipeError):
        send(answers, "step")
    os.close(answers)


def test_half_a_message_is_none() -> None:
    requests, answers = os.pipe()
    send(answers, "step")
    whole = os.read(requests, 1000)
    os.write(answers, whole[:-1])
    os.close(answers)
    with pytest.raises(EOFError):
        receive(requests)
    os.close(requests)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        CorruptionError("the head of the first batch is damaged"),
        StorageError("reading failed", retryable=True),
    ],
)
def test_an_error_is_raised_as_it_was(error: Exception) -> None:
    found = Failed.of(error).error()
    assert (type(found), str(found)) == (type(error), str(error))


def test_an_internal_error_stays_one() -> None:
    error = Failed.of(KeyError(7)).error()
    assert isinstance(error, RuntimeError)
    assert str(error) == "the process that copies segments: KeyError: 7"
