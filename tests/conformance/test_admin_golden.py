"""Replays exchanges recorded from Apache Pulsar 4.0.8 (standalone) against our admin API.

``golden/admin-4.0.8.jsonl`` holds the recorded exchanges that belong to what is built (``line`` is
the place in the full record, which left some requests out: SETUP makes those up). Compared are the
status, the content type and the body: errors by their text, plain answers by value, statistics by
names, order and types. What differs on purpose is said in ``_compare`` and ``DEVIATIONS``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.admin_servers import SERVERS, AdminServer
from tests.unit.admin.client import Answer

RECORD = Path(__file__).parent / "golden" / "admin-4.0.8.jsonl"

_RATE = {"dispatchThrottlingRateInMsg": 10, "dispatchThrottlingRateInByte": -1,
         "ratePeriodInSecond": 1, "relativeToPublishRate": False}  # fmt: skip

# Requests that the record lacks, by the line before which they are needed.
_QUOTA = "/admin/v2/namespaces/acme/ns/backlogQuota"
SETUP: dict[int, list[tuple[str, str, Any]]] = {
    67: [("POST", _QUOTA, {"limitSize": 1000, "limitTime": -1, "policy": "producer_request_hold"})],
    70: [("POST", _QUOTA, {"limit": 7000, "policy": "producer_exception"})],
    85: [("POST", "/admin/v2/namespaces/acme/ns/retention",
          {"retentionTimeInMinutes": 10, "retentionSizeInMB": 100})],
    94: [("DELETE", "/admin/v2/namespaces/acme/ns/persistence", None)],
    115: [("POST", "/admin/v2/namespaces/acme/ns/maxUnackedMessagesPerConsumer", 10)],
    127: [("POST", "/admin/v2/namespaces/acme/ns/autoTopicCreation",
           {"allowAutoTopicCreation": True, "topicType": "partitioned",
            "defaultNumPartitions": 2})],
    109: [("DELETE", "/admin/v2/namespaces/acme/ns/maxConsumersPerTopic", None)],
    175: [("DELETE", "/admin/v2/persistent/acme/ns/t1/subscriptionDispatchRate", None)],
    178: [("POST", "/admin/v2/persistent/acme/ns/t1/publishRate",
           {"publishThrottlingRateInMsg": 50, "publishThrottlingRateInByte": -1})],
    190: [("POST", "/admin/v2/persistent/acme/ns/t1/sub1/dispatchRate", _RATE)],
    196: [("DELETE", "/admin/v2/persistent/acme/ns/t1/backlogQuota", None)],
}  # fmt: skip

# What clients do, by the line before which they do it.
CLIENTS = {197: "use_t1", 209: "use_pt2", 218: "leave_slow"}

_ABSENT = "a limit that the request leaves out is none, where Pulsar takes 0 and blocks everybody"
_BOTH = "applied=true shows the other type as well, which Pulsar enforces and leaves out"
_NAMED = "which key it is about, and why"
_OFF = {"limit": -1, "limitSize": -1, "limitTime": -1, "policy": "producer_request_hold"}

# What is answered otherwise on purpose, by the line: why, and the values by their places.
DEVIATIONS: dict[int, tuple[str, dict[str, Any]]] = {
    69: (_ABSENT, {"destination_storage.limitTime": -1}),
    70: (_ABSENT, {"destination_storage.limitTime": -1}),
    78: (_ABSENT, {"message_age.limit": -1, "message_age.limitSize": -1}),
    80: (_ABSENT, {"destination_storage.limitTime": -1, "message_age.limit": -1,
                   "message_age.limitSize": -1}),
    221: ("LookupData has the key, which a Pulsar without TLS leaves out", {"brokerUrlTls": ""}),
    232: (_NAMED, {"reason": "Can't update non-dynamic configuration: there is no setting 'nope'"}),
    233: (_NAMED, {"reason": "Can't update non-dynamic configuration: brokerServicePort is read "
                             "when the broker starts, and only then"}),
    195: (_BOTH, {"message_age": _OFF}),
}  # fmt: skip

# Compared by names and types only: the values are the broker's own.
BY_SHAPE = re.compile(
    r"/(stats|partitioned-stats|internalStats|lastMessageId|messageid/\d+|internal-configuration"
    r"|configuration|configuration/runtime)($|\?)"
)
MAPS = (".subscriptions", ".cursors", ".partitions")
"""Maps by names of the user's, whose order means nothing."""
NOT_RECORDED = {
    "headgate", "oldestBacklogMessageSubscriptionName", "dispatchThrottledMsgs",
    "dispatchThrottledBytes",
}  # fmt: skip
"""Our own account; what Pulsar finds out at its next check of quotas only, a minute later; and the
fields of PIP-406's first form, which it never had."""
SYSTEM_TENANT = "headgate"


@pytest.fixture(params=sorted(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[AdminServer]:
    with SERVERS[request.param]() as found:
        yield found


def test_recorded_exchanges(server: AdminServer) -> None:
    problems = []
    assert DEVIATIONS.keys() <= {
        json.loads(line)["line"] for line in RECORD.read_text().splitlines()
    }
    for line in RECORD.read_text().splitlines():
        exchange = json.loads(line)
        number, request = exchange["line"], exchange["request"]
        for method, path, body in SETUP.get(number, ()):
            assert server.ask(method, path, body).status == 204, (number, path)
        if number in CLIENTS:
            getattr(server, CLIENTS[number])()
        body = request["body"]
        sent = body.encode() if isinstance(body, str) else body
        answer = server.ask(request["method"], request["path"], sent)
        recorded = exchange["response"]
        if number in DEVIATIONS:
            reason, changes = DEVIATIONS[number]
            recorded = recorded | {"body": _deviating(recorded["body"], changes, reason)}
        found = _compare(server, request["path"], recorded, answer)
        problems += [
            f"line {number} {request['method']} {request['path']}: {text}" for text in found
        ]
    assert not problems, "\n".join(problems)


def _compare(server: AdminServer, path: str, recorded: dict[str, Any], answer: Answer) -> list[str]:
    if answer.status != recorded["status"]:
        return [f"status {answer.status}, recorded {recorded['status']}: {answer.body[:200]!r}"]
    kind = recorded["content_type"].partition(";")[0]
    if kind == "text/html" or (answer.status == 405 and kind == ""):
        # The servlet container's own pages: ours have the one error shape.
        return [] if answer.reason else ["no reason"]
    if kind == "text/plain":
        # Jackson's texts: ours are in the one error shape and without Java's class names.
        return _differ(answer.reason.partition("\n")[0], _plain(recorded["body"]))
    if answer.content_type != kind:
        return [f"content type {answer.content_type!r}, recorded {kind!r}"]
    if kind == "":
        return _differ(answer.body, b"")
    if path.endswith(("/ready", "/health")):
        return _differ(answer.body.decode(), recorded["body"])
    if BY_SHAPE.search(path):
        return _differ_in_shape(answer.json(), recorded["body"], "$")
    return _differ(_ours_removed(path, answer.json()), _addressed(server, recorded["body"]))


def _deviating(body: Any, changes: dict[str, Any], reason: str) -> Any:
    """A recorded body with what we answer instead; a change that changes nothing is none."""
    changed = json.loads(json.dumps(body))
    for place, value in changes.items():
        *steps, last = place.split(".")
        within = changed
        for step in steps:
            within = within[step]
        assert within.get(last) != value, (reason, place)
        within[last] = value
    return changed


def _plain(text: str) -> str:
    text = text.partition("\n")[0]
    return text.replace("org.apache.pulsar.common.policies.data.impl.DispatchRateImpl",
                        "DispatchRate")  # fmt: skip


def _ours_removed(path: str, body: Any) -> Any:
    if path == "/admin/v2/tenants":
        return [name for name in body if name != SYSTEM_TENANT]
    return body


def _addressed(server: AdminServer, body: Any) -> Any:
    text = json.dumps(body).replace("pulsar://127.0.0.1:6650", server.broker_url)
    return json.loads(text.replace("127.0.0.1:8080", server.broker_id))


def _differ(ours: Any, recorded: Any) -> list[str]:
    same_order = not isinstance(ours, dict) or list(ours) == list(recorded)
    return [] if ours == recorded and same_order else [f"{ours!r}, recorded {recorded!r}"]


def _differ_in_shape(ours: Any, recorded: Any, where: str) -> list[str]:
    """Names, their order and their types; not how many partitions or consumers there are."""
    if type(ours) is not type(recorded):
        return [f"{where} is {ours!r}, recorded {recorded!r}"]
    if isinstance(ours, list):
        return [
            text
            for index, item in enumerate(ours)
            for text in _differ_in_shape(item, recorded[0], f"{where}[{index}]")
        ]
    if not isinstance(ours, dict):
        return []
    if where.endswith(("configuration", "$")) and all(
        isinstance(v, str) for v in recorded.values()
    ):
        return [f"{where}.{k} is {v!r}" for k, v in ours.items() if not isinstance(v, str)]
    names = [name for name in ours if name not in NOT_RECORDED or name in recorded]
    if where.endswith(MAPS):
        names, recorded = sorted(names), dict(sorted(recorded.items()))
    if names != list(recorded):
        return [f"{where} has {names}, recorded {list(recorded)}"]
    return [
        text
        for name in names
        for text in _differ_in_shape(ours[name], recorded[name], f"{where}.{name}")
    ]
