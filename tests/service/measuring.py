"""What clients and the broker saw of deliveries, second by second, and how late clients saw it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pulsar

from tests.service.neighbour import processor_times_s

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)

IDLE_S = 10.0
"""A connection that was idle for longer may have been closed by the broker meanwhile."""


class Arrivals:
    """When messages reached one client's consumers; a listener of the real client.

    Instants are of the monotonic clock, in seconds.
    """

    def __init__(self, work_s: float = 0.0) -> None:
        """``work_s`` is how long each message keeps the consumer busy."""
        self.at: list[float] = []
        self.payloads: list[bytes] = []
        self._work_s = work_s

    def __call__(self, consumer: pulsar.Consumer, message: pulsar.Message) -> None:
        self.at.append(time.monotonic())
        self.payloads.append(message.data())
        if self._work_s:
            time.sleep(self._work_s)
        # Its consumer may have been closed meanwhile: then the message comes once more.
        try:
            consumer.acknowledge(message)
        except pulsar.PulsarException:
            return

    def count(self, begin: float, end: float) -> int:
        """Arrivals in [begin, end)."""
        return bisect_left(self.at, end) - bisect_left(self.at, begin)


def merged(arrivals: Iterable[Arrivals]) -> list[float]:
    """All their instants in order."""
    return sorted(at for each in arrivals for at in each.at)


def most_in(at: list[float], window_s: float) -> int:
    """The largest number of instants in any sliding window; ``at`` is in order."""
    first = most = 0
    for last, instant in enumerate(at):
        while at[first] <= instant - window_s:
            first += 1
        most = max(most, last + 1 - first)
    return most


def each_second(at: list[float], begin: float, end: float) -> list[int]:
    """How many fell into each whole second from ``begin`` on."""
    edges = [bisect_left(at, begin + second) for second in range(int(end - begin) + 1)]
    return [after - before for before, after in pairwise(edges)]


def disk_stalled_s() -> float:
    """How long some process of the machine has waited for a disk; 0 where the kernel keeps no
    account of pressure."""
    try:
        some = Path("/proc/pressure/io").read_text().partition("\n")[0]
    except OSError:
        return 0.0
    return int(some.rpartition("total=")[2]) / 1e6


class Noise:
    """How much time the machine took away: from this process's threads, and from brokers.

    A broker that does not get a processor, though it could run, or whose disk does not answer, is
    stalled, and by the law what a stall costs is not caught up; what clients note late moves from
    one second to the next. Of the disk only the kernel's sum over all processes is known.
    """

    STEP_S = 0.005
    PACED_S = 0.004
    """What the law catches up anyway: shorter waits are not worth noting."""

    def __init__(self, pids: Iterable[int]) -> None:
        self.late_most_s = 0.0
        """The longest time that a thread of this process came late by."""
        self._late: list[tuple[float, float]] = []
        self._stalls: dict[int, list[tuple[float, float]]] = {pid: [] for pid in pids}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Noise:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def lost_s(self, pid: int, begin: float, end: float) -> float:
        """What of this interval was, at most, lost to the broker ``pid`` and to this process."""
        both = self._late + self._stalls[pid]
        return sum(lost_s for at, lost_s in both if begin <= at <= end + lost_s)

    def _run(self) -> None:
        waited = {pid: processor_times_s(pid)[1] for pid in self._stalls}
        disk_s = disk_stalled_s()
        due = time.monotonic() + self.STEP_S
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            if now - due > self.PACED_S:
                self.late_most_s = max(self.late_most_s, now - due)
                self._late.append((now, now - due))
            disk_before_s, disk_s = disk_s, disk_stalled_s()
            if disk_s - disk_before_s > self.PACED_S:
                self._late.append((now, disk_s - disk_before_s))
            for pid, before_s in waited.items():
                waited[pid] = after_s = processor_times_s(pid)[1]
                if after_s - before_s > self.PACED_S:
                    self._stalls[pid].append((now, after_s - before_s))
            due = time.monotonic() + self.STEP_S


class Rest:
    """Requests to one broker's web port over one connection."""

    def __init__(self, admin_url: str) -> None:
        parts = urlsplit(admin_url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        self._used = time.monotonic()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded reply to a request, which must not be refused."""
        text = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        if time.monotonic() > self._used + IDLE_S:
            self._connection.close()  # it opens anew by itself
        self._used = time.monotonic()
        self._connection.request(method, path, text, headers)
        reply = self._connection.getresponse()
        content = reply.read()
        assert reply.status < 300, (method, path, reply.status, content)
        return json.loads(content) if content else None

    def topic(self, topic: str, path: str = "stats") -> Any:
        """``GET`` something of a topic, by default its statistics."""
        return self.ask("GET", f"{topic_path(topic)}/{path}")

    def close(self) -> None:
        self._connection.close()


def topic_path(topic: str) -> str:
    """Where admin REST has a topic, given its full name."""
    return "/admin/v2/" + topic.replace("://", "/")


@dataclass(frozen=True, slots=True)
class Poll:
    """Counters that the broker named at an instant between two of this process."""

    asked: float
    answered: float
    messages: dict[str, int]
    """By subscription: delivered since the topic's load."""
    bytes: dict[str, int]


@dataclass
class Polls:
    """One topic's statistics, again and again."""

    all: list[Poll] = field(default_factory=list)

    def ask(self, rest: Rest, topic: str) -> None:
        asked = time.monotonic()
        stats = rest.topic(
            topic,
            "stats?excludePublishers=true&excludeConsumers=true&subscriptionBacklogSize=false",
        )
        answered = time.monotonic()
        found = stats["subscriptions"].items()
        self.all.append(
            Poll(
                asked,
                answered,
                {name: each["msgOutCounter"] for name, each in found},
                {name: each["bytesOutCounter"] for name, each in found},
            )
        )

    def within(self, begin: float, end: float) -> list[Poll]:
        return [poll for poll in self.all if begin <= poll.asked and poll.answered <= end]

    def most_in(
        self, window_s: float, begin: float, end: float, amount: Callable[[Poll], int]
    ) -> int:
        """The largest amount that surely fell into one window, whatever was late.

        Both readings lie between the first request and the second answer; where these are at most
        a window apart, so is everything that was delivered between the readings.
        """
        polls = self.within(begin, end)
        most = first = 0
        for poll in polls:
            while poll.answered - polls[first].asked > window_s:
                first += 1
            most = max(most, amount(poll) - amount(polls[first]))
        return most


def most_arrived(
    window_s: float, begin: float, end: float, of: list[tuple[Polls, dict[str, Arrivals]]]
) -> int:
    """The largest number of messages that clients got and that surely were delivered in one window.

    What they have a window after a request, less what the broker had delivered at its answer, was
    delivered within the window. ``of`` are topics that one :class:`Poller` asked in turn, with
    their clients by subscription; they count together.
    """
    most = 0
    for polls in zip(*(polls.all for polls, _ in of), strict=False):
        until = polls[0].asked + window_s
        if polls[0].asked < begin or until > end:
            continue
        count = 0
        for poll, (_, clients) in zip(polls, of, strict=True):
            for name, arrivals in clients.items():
                count += arrivals.count(0, until) - poll.messages[name]
        most = max(most, count)
    return most


def noted_late_s(polls: list[Poll], clients: dict[str, Arrivals]) -> float:
    """How long after the broker counted a message its client noted it, at most, in seconds.

    Each poll says how many messages were delivered when it was answered; the client may note the
    last of them later, which is its own delay. Each message was delivered once until then.
    """
    late_s = 0.0
    for poll in polls:
        for name, arrivals in clients.items():
            count = poll.messages[name]
            if 0 < count <= len(arrivals.at):
                late_s = max(late_s, arrivals.at[count - 1] - poll.answered)
    return late_s


class Asking(ABC):
    """A thread that asks the admin API again and again until it is left. What goes wrong in it is
    raised there."""

    def __init__(self, admin_url: str, pause_s: float) -> None:
        self._url = admin_url
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @abstractmethod
    def ask(self, rest: Rest) -> None:
        """Ask once."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        rest = Rest(self._url)
        try:
            while not self._stop.wait(self._pause_s):
                self.ask(rest)
        except BaseException as failure:
            self._failure = failure
        finally:
            rest.close()


class Poller(Asking):
    """Asks for the statistics of several topics in turn."""

    def __init__(self, admin_url: str, topics: Iterable[str], pause_s: float) -> None:
        super().__init__(admin_url, pause_s)
        self.of = {topic: Polls() for topic in topics}
        self._turns = cycle(self.of.items())

    def ask(self, rest: Rest) -> None:
        """Ask for the next topic's."""
        topic, polls = next(self._turns)
        polls.ask(rest, topic)
