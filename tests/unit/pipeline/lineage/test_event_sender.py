"""Events go in their order beside the job; a failure is one warning, and never waits long."""

from __future__ import annotations

import threading
from typing import Any

from headgate.pipeline.lineage.event_sender import EVENTS_MAX, EventSender

URL = "http://host:5000"


def test_events_go_in_their_order() -> None:
    sent: list[Any] = []
    said: list[str] = []
    sender = EventSender(sent.append, URL, said.append)
    for number in range(10):
        sender.send(number)
    sender.close()
    assert (sent, said) == ([*range(10)], [])


def test_failures_make_one_warning_and_later_events_go_on() -> None:
    sent: list[Any] = []
    said: list[str] = []

    def emit(event: int) -> None:
        if event < 2:
            raise ConnectionError("pool (Caused by NewConnectionError('refused'))\nmore")
        sent.append(event)

    sender = EventSender(emit, URL, said.append)
    for number in range(4):
        sender.send(number)
    sender.close()
    assert sent == [2, 3]
    assert said == [
        "OpenLineage: http://host:5000 does not take events (NewConnectionError('refused'))). The"
        " job goes on; lineage of this run is incomplete."
    ]


def test_a_server_that_never_answers_does_not_hold_the_job() -> None:
    said: list[str] = []
    release = threading.Event()
    sender = EventSender(lambda _: release.wait(), URL, said.append, close_s=0.01)
    for number in range(EVENTS_MAX + 5):
        sender.send(number)
    sender.close()
    assert len(said) == 1
    assert "256 events wait for an answer" in said[0]
    release.set()


def test_the_end_of_a_job_waits_for_a_bounded_time() -> None:
    said: list[str] = []
    release = threading.Event()
    sender = EventSender(lambda _: release.wait(), URL, said.append, close_s=0.01)
    sender.send(1)
    sender.close()
    assert "no answer within 0.01 s" in said[0]
    release.set()
