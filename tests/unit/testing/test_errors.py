"""What a refusal tells."""

from __future__ import annotations

from headgate.testing.errors import refused
from headgate.wire.codes import ServerError
from headgate.wire.messages import BaseCommand


def test_a_refusal_carries_code_and_text() -> None:
    answer = BaseCommand().error
    answer.error = ServerError.CONSUMER_BUSY
    answer.message = "taken"
    error = refused(answer)
    assert error.code is ServerError.CONSUMER_BUSY
    assert error.message == "taken"
    assert str(error) == "CONSUMER_BUSY: taken"
