from __future__ import annotations

import pickle

import pulsar

from pyspark_pulsar.errors import AccessError, MalformedEntryError, PulsarSourceError
from pyspark_pulsar.reader_worker import portable


class StubbornError(Exception):
    """Cannot be made from its arguments."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return portable(caught)


def test_the_sources_own_errors_keep_their_text_alone() -> None:
    error = pickle.loads(pickle.dumps(raised(AccessError("refused"))))
    assert (type(error), str(error)) == (AccessError, "refused")
    assert not hasattr(error, "__notes__")
    malformed = pickle.loads(pickle.dumps(raised(MalformedEntryError(3, 7))))
    assert (malformed.ledger_id, malformed.entry_id) == (3, 7)


def test_other_errors_bring_their_traceback() -> None:
    error = pickle.loads(pickle.dumps(raised(pulsar.TopicNotFound("gone"))))
    assert isinstance(error, pulsar.TopicNotFound)
    (note,) = error.__notes__
    assert note.startswith("In the process that reads from the broker:\nTraceback")


def test_an_error_that_cannot_be_sent_is_told_as_text() -> None:
    error = raised(StubbornError("a", "b"))
    assert type(error) is PulsarSourceError
    assert "StubbornError: a b" in str(error)
