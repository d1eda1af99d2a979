"""Administrators that list, read statistics and change policies while turns are measured."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from itertools import count

PAUSE_S = 0.05

_SPACE = "/admin/v2/namespaces/public/default"
_TOPICS = "/admin/v2/persistent/public/default"
_DISPATCH = {
    "dispatchThrottlingRateInMsg": 100_000,
    "dispatchThrottlingRateInByte": -1,
    "ratePeriodInSecond": 1,
    "relativeToPublishRate": False,
}
_PUBLISH = {"publishThrottlingRateInMsg": 100_000, "publishThrottlingRateInByte": -1}
_RETENTION = {"retentionTimeInMinutes": 1, "retentionSizeInMB": 10}
_QUOTA = {"limitSize": 1 << 40, "limitTime": -1, "policy": "producer_request_hold"}

Request = tuple[str, str, object]


def requests_of_round(number: int, topics: int) -> list[Request]:
    """What administrators ask in one round; each round names other topics."""
    one, other = number * 7919 % topics, number * 104_729 % topics
    extra = f"{_TOPICS}/extra{number}"
    reads: list[Request] = [
        ("GET", _TOPICS, None),
        ("GET", f"{_SPACE}/topics", None),
        ("GET", "/metrics", None),
        ("GET", "/admin/v2/headgate/explain", None),
        ("GET", "/admin/v2/headgate/storage", None),
        ("GET", f"{_TOPICS}/t{one}/stats", None),
        ("GET", f"{_TOPICS}/t{one}/internalStats", None),
        ("GET", f"{_TOPICS}/wide/stats", None),
        ("GET", f"{_TOPICS}/wide/internalStats", None),
        ("GET", "/admin/v2/headgate/explain/persistent/public/default/wide", None),
        ("GET", "/admin/v2/brokers/backlog-quota-check", None),
        ("GET", "/admin/v2/brokers/health", None),
    ]
    policies: list[list[Request]] = [
        [("POST", f"{_SPACE}/dispatchRate", _DISPATCH)],
        [("POST", f"{_SPACE}/publishRate", _PUBLISH), ("DELETE", f"{_SPACE}/dispatchRate", None)],
        [("DELETE", f"{_SPACE}/publishRate", None), ("POST", f"{_SPACE}/retention", _RETENTION)],
        [("POST", f"{_SPACE}/backlogQuota", _QUOTA), ("DELETE", f"{_SPACE}/retention", None)],
        [("POST", f"{_SPACE}/subscriptionDispatchRate", _DISPATCH)],
        [("DELETE", f"{_SPACE}/subscriptionDispatchRate", None)],
        [("POST", "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg/1000000", None)],
        [("DELETE", "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg", None)],
    ]
    writes: list[Request] = [
        ("PUT", extra, None),
        ("PUT", f"{extra}/subscription/s", None),
        ("DELETE", f"{extra}?force=true", None),
        ("PUT", f"{_TOPICS}/t{other}/unload", None),
        ("POST", f"{_TOPICS}/t{one}/subscription/s/skip_all", None),
        ("POST", f"{_TOPICS}/t{one}/dispatchRate", _DISPATCH),
    ]
    return [*reads, *policies[number % len(policies)], *writes]


class Administrators(threading.Thread):
    """Asks round after round until :meth:`stop`."""

    def __init__(self, port: int, topics: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._topics = topics
        self._is_stopped = threading.Event()
        self.rounds = 0
        self.statuses: Counter[int] = Counter()
        """Answers by status; 0 counts requests without an answer."""
        self.slowest_s: dict[str, float] = {}
        """By method and path, without numbers, the slowest answer."""

    def run(self) -> None:
        """The thread."""
        for number in count():
            for method, path, body in requests_of_round(number, self._topics):
                if self._is_stopped.wait(PAUSE_S):
                    return
                self._ask(method, path, body)
            self.rounds += 1

    def stop(self) -> None:
        """End after the present request."""
        self._is_stopped.set()
        self.join(60)

    def _ask(self, method: str, path: str, body: object) -> None:
        began_s = time.perf_counter()
        status = ask(self._port, method, path, body)[0]
        took_s = time.perf_counter() - began_s
        self.statuses[status] += 1
        name = f"{method} {''.join(c for c in path if not c.isdigit())}"
        self.slowest_s[name] = max(took_s, self.slowest_s.get(name, 0.0))


def ask(port: int, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """One request; status 0 if no answer comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def metric(port: int, name: str) -> float:
    """A value without labels of its own from /metrics; 0 if it is not there."""
    text = ask(port, "GET", "/metrics")[1].decode()
    found = (line for line in text.splitlines() if line.startswith(name))
    return max((float(line.rpartition(" ")[2]) for line in found), default=0.0)
