"""The work of the client processes, with a fake client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pulsar
import pytest

from headgate.demo import workers
from headgate.demo.workers import (
    BacklogSpec,
    Clients,
    ConsumerSpec,
    ProducerSpec,
    WorkSpec,
    consume,
    publish,
    publish_all,
)


class _Time:
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> _Time:
    passing = _Time()
    monkeypatch.setattr(workers, "time", passing)
    return passing


class _EndedError(Exception):
    """Nothing more to receive: the process would be ended here."""


class _Consumer:
    """Hands out messages at once; None stands for a wait without any."""

    def __init__(self, time: _Time, messages: list[int | None]) -> None:
        self._time = time
        self._messages = messages
        self.acknowledged: list[tuple[int, float]] = []

    def receive(self, timeout_millis: int) -> int:
        if not self._messages:
            raise _EndedError
        message = self._messages.pop(0)
        if message is None:
            self._time.now_s += timeout_millis / 1_000
            raise pulsar.Timeout
        return message

    def acknowledge(self, message: int) -> None:
        self.acknowledged.append((message, self._time.now_s))


def test_a_consumer_keeps_its_rate(time: _Time) -> None:
    consumer = _Consumer(time, list(range(201)))
    with pytest.raises(_EndedError):
        consume(consumer, 40)
    assert [message for message, _ in consumer.acknowledged] == list(range(201))
    first, last = consumer.acknowledged[0][1], consumer.acknowledged[-1][1]
    assert last - first == pytest.approx(200 / 40)


def test_idle_time_is_not_caught_up(time: _Time) -> None:
    consumer = _Consumer(time, [1, *[None] * 20, *range(2, 12)])
    with pytest.raises(_EndedError):
        consume(consumer, 10)
    times = [at_s for _, at_s in consumer.acknowledged]
    steps = [after - before for before, after in pairwise(times[1:])]
    assert steps == pytest.approx([0.1] * 9)


def test_a_consumer_without_a_rate_receives_everything(time: _Time) -> None:
    consumer = _Consumer(time, [1, 2, None, 3])
    with pytest.raises(_EndedError):
        consume(consumer, None)
    assert [message for message, _ in consumer.acknowledged] == [1, 2, 3]


class _Producer:
    def __init__(self, result: Any = pulsar.Result.Ok) -> None:
        self._result = result
        self.sent = 0
        self.flushed_at: list[int] = []

    def send_async(self, payload: bytes, callback: Callable[[Any, Any], None]) -> None:
        assert payload
        self.sent += 1
        callback(self._result, None)

    def flush(self) -> None:
        self.flushed_at.append(self.sent)


def _spec(*rates_per_s: int, phase_s: float = 5.0) -> ProducerSpec:
    return ProducerSpec("pulsar://a", "t", rates_per_s, phase_s)


class _Stop(threading.Event):
    """Becomes set after a simulated time."""

    def __init__(self, time: _Time, seconds: float) -> None:
        super().__init__()
        self._time = time
        self._end_s = time.now_s + seconds

    def wait(self, timeout: float | None = None) -> bool:
        self._time.sleep(timeout or 0.0)
        return self._time.now_s >= self._end_s


def test_each_producer_keeps_its_rate(time: _Time) -> None:
    producers = [_Producer(), _Producer()]
    publish([(producers[0], _spec(600)), (producers[1], _spec(50, 150))], _Stop(time, 10.0))
    assert [each.sent for each in producers] == pytest.approx([6_000, 1_000], abs=15)


class _SlowProducer(_Producer):
    """Receipts come when somebody asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[Any, Any], None]] = []

    def send_async(self, payload: bytes, callback: Callable[[Any, Any], None]) -> None:
        assert payload
        self.sent += 1
        self.waiting.append(callback)


def test_a_producer_waits_for_its_receipts(time: _Time) -> None:
    """What it would have published meanwhile is not made good, and nobody else waits."""
    producer, other = _SlowProducer(), _Producer()
    patient = ProducerSpec("pulsar://a", "t", (400,), 5.0, pending_max=100)
    publish([(producer, patient), (other, _spec(50))], _Stop(time, 10.0))
    assert producer.sent == 100
    assert other.sent == pytest.approx(500, abs=2)
    steady = _Producer()
    publish([(steady, patient)], _Stop(time, 10.0))
    assert steady.sent == pytest.approx(4_000, abs=15)


def test_a_backlog_is_published_in_parts_for_the_clients_queue() -> None:
    producer = _Producer()
    publish_all(producer, 250_000)
    assert producer.flushed_at == [100_000, 200_000, 250_000]
    with pytest.raises(RuntimeError, match="ServiceUnitNotReady"):
        publish_all(_Producer(pulsar.Result.ServiceUnitNotReady), 3)


def test_a_refused_message_ends_the_worker(time: _Time) -> None:
    producer = _Producer(pulsar.Result.ServiceUnitNotReady)
    with pytest.raises(RuntimeError, match="ServiceUnitNotReady"):
        publish([(producer, _spec(100))], _Stop(time, 10.0))
    assert producer.sent < 10


def test_a_spec_is_parsed_from_its_command_line() -> None:
    spec = WorkSpec(
        (ProducerSpec("pulsar://a", "t", (5, 10), 2.5, 100),),
        (ConsumerSpec("pulsar://a", "t", "s", None, 100), ConsumerSpec("b", "u", "s", 40, 10)),
        (BacklogSpec("pulsar://a", "t", 7),),
        "/of a run/producer.token",
    )
    assert WorkSpec.from_json(spec.to_json()) == spec


def test_clients_present_the_token_that_their_file_has_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(pulsar, "Client", lambda url, **given: made.append({"url": url, **given}))
    monkeypatch.setattr(pulsar, "AuthenticationToken", lambda supplier: supplier)
    Clients().get("pulsar://a")
    path = tmp_path / "producer.token"
    Clients(str(path)).get("pulsar://b")
    plain, secured = made
    assert (plain["url"], plain["authentication"]) == ("pulsar://a", None)
    for token in ("one", "two"):
        path.write_text(f"{token}\n")
        assert secured["authentication"]() == token
