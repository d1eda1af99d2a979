"""Stands where sockets stand, between the client of a cluster and a fake cluster."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from headgate.access.admin_api import UnreachableError
from headgate.agent.transport import RawReply
from headgate.base.errors import InputError
from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S
from headgate.testing.clock import ManualClock
from headgate.testing.fake_cluster.cluster import FakeCluster
from headgate.testing.fake_cluster.faults import Faults
from headgate.testing.fake_cluster.pulsar_json import internal_stats, survey, topic_stats

_JSON = {"content-type": "application/json"}
_PAGES = {"content-type": "text/html"}
_PAGE = b"<html><head><title>Sign in</title></head></html>"


class FakeTransport:
    """A :class:`headgate.agent.transport.Transport` to a fake cluster, in virtual time.

    Any host that is no broker of the cluster is a balancer before it, which asks the first broker.
    """

    def __init__(
        self, cluster: FakeCluster, clock: ManualClock, faults: Faults | None = None
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._start_ns = clock.monotonic_ns() - cluster.age_ns
        self.faults = faults or Faults()
        self.asked: Counter[str] = Counter()
        """How often each broker was asked."""
        self.sent_at_ns: list[int] = []
        self.urls: list[str] = []
        """The last thousand."""

    @property
    def at_ns(self) -> int:
        """Time of the cluster."""
        return self._clock.monotonic_ns() - self._start_ns

    def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout_s: float,
        bytes_max: int = 0,  # noqa: ARG002
    ) -> RawReply:
        where, faults = urlsplit(url), self.faults
        call = len(self.sent_at_ns)
        self.sent_at_ns.append(self._clock.monotonic_ns())
        self.urls = [*self.urls[-999:], url]
        broker = where.netloc if where.netloc in self._cluster.brokers else self._cluster.brokers[0]
        self.asked[broker] += 1
        if broker in faults.gone:
            self._clock.advance(round(min(faults.timeout_s, timeout_s) * NS_PER_S))
            raise UnreachableError(f"http://{where.netloc} did not answer within {timeout_s:g} s")
        self._clock.advance(round(faults.took_s * NS_PER_S))
        if call == faults.failing_call:
            return _reply(500, {"reason": "internal error"})
        if faults.status is not None:
            return _reply(faults.status, {"reason": "too many requests"})
        if faults.is_page:
            return RawReply(200, _PAGES, _PAGE)
        refused = faults.refused(where.path, headers.get("Authorization", ""))
        if refused is not None:
            return _reply(refused, {"reason": faults.refusal})
        reply = self._answer(broker, where.path, url)
        return reply._replace(body=faults.spoil(bytes(reply.body)))

    def close(self) -> None:
        """Nothing is open."""

    def _answer(self, broker: str, path: str, url: str) -> RawReply:
        parts = path.removeprefix("/admin/v2/").split("/")
        if path.startswith("/lookup/v2/topic/"):
            owner = self._cluster.owner("{}://{}/{}/{}".format(*map(unquote, path.split("/")[4:8])))
            return _reply(200, {"httpUrl": f"http://{owner}", "brokerUrl": "pulsar://x:6650"})
        if parts[:1] == ["brokers"]:
            return self._of_brokers(parts[1:])
        if parts[:2] == ["broker-stats", "topics"]:
            return _reply(200, survey(self._cluster, broker, self.at_ns))
        if parts[0] == "namespaces" and len(parts) == 3:
            return _reply(200, self._cluster.namespaces.get("/".join(parts[1:]), {}))
        if parts[0] == "namespaces" and parts[3:] == ["backlogQuotaMap"]:
            return _reply(200, self._cluster.quotas.get("/".join(parts[1:3]), {}))
        if parts[0] == "persistent" and len(parts) == 3:
            return self._of_namespace("/".join(parts[1:]))
        if parts[0] == "persistent" and len(parts) > 4:
            return self._of_topic(broker, parts, url)
        # As a Pulsar answers: a page, not JSON.
        return RawReply(404, _PAGES, b"<html>\n<title>Error 404 Not Found</title>\n</html>")

    def _of_brokers(self, parts: list[str]) -> RawReply:
        if not parts:
            return _reply(200, self._cluster.brokers)
        if parts == ["version"]:
            return RawReply(200, {"content-type": "text/plain"}, self._cluster.version.encode())
        if parts == ["configuration", "runtime"]:
            return _reply(200, self._cluster.settings)
        return _reply(404, {"reason": "HTTP 404 Not Found"})

    def _of_namespace(self, name: str) -> RawReply:
        topics = self._cluster.namespace_topics(name)
        if not topics and name not in self._cluster.namespaces:
            return _reply(404, {"reason": "Namespace not found"})
        return _reply(200, topics)

    def _of_topic(self, broker: str, parts: list[str], url: str) -> RawReply:
        cluster = self._cluster
        name = "{}://{}/{}/{}".format(*map(unquote, parts[:4]))
        if parts[4:] == ["partitions"]:
            count = cluster.partitioned.get(name, 0)
            known = count or name in cluster.topics
            return _reply(200, {"partitions": count}) if known else _no_topic(name)
        if name not in cluster.topics and parts[4] in ("stats", "internalStats"):
            return _no_topic(name)
        owner = cluster.owner(name)
        if self.faults.is_looping:
            owner = cluster.brokers[(cluster.brokers.index(broker) + 1) % len(cluster.brokers)]
        if owner != broker and parts[4] in ("stats", "internalStats"):
            where = urlsplit(url)
            return RawReply(307, {"location": where._replace(netloc=owner).geturl()}, b"")
        if parts[4:] == ["stats"]:
            return _reply(200, topic_stats(cluster, cluster.topics[name], self.at_ns))
        if parts[4:] == ["internalStats"]:
            return _reply(200, internal_stats(cluster.topics[name], self.at_ns))
        topic = cluster.topics.get(name)
        policy = topic.policies.get("/".join(parts[4:])) if topic else None
        return RawReply(204, _JSON, b"") if policy is None else _reply(200, policy)


def gibberish(body: bytes) -> bytes:
    """Numbers that no broker should send: NaN, negative ones, and ones beyond a long."""
    if not body:
        return body
    found = json.loads(body)
    return json.dumps(_spoiled(found, [0])).encode()


def _spoiled(value: Any, count: list[int]) -> Any:
    if isinstance(value, dict):
        return {name: _spoiled(inner, count) for name, inner in value.items()}
    if isinstance(value, list):
        return [_spoiled(inner, count) for inner in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    count[0] += 1
    return (float("nan"), -7, 1e300, value)[count[0] % 4]


def _reply(status: int, value: object) -> RawReply:
    return RawReply(status, _JSON, json.dumps(value).encode())


def _no_topic(name: str) -> RawReply:
    try:
        full = parse_topic(name).full
    except InputError as error:
        return _reply(412, {"reason": str(error)})
    return _reply(404, {"reason": f"Topic {full} not found"})
