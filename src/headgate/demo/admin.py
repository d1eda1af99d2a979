"""The demo's client of admin REST."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import urllib3

from headgate.base.errors import HeadgateError
from headgate.demo.findings import Finding, from_explain
from headgate.demo.scenes import Scene
from headgate.flow.limits.rate_limit import Level

_TIMEOUT_S: Final = 10
_OK_MAX: Final = 299


class AdminCallError(HeadgateError):
    """A broker refused a request or did not answer."""


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request that changes something."""

    method: str
    path: str
    body: Any = None

    def curl(self, web_url: str, header_path: str = "") -> str:
        """The request as a shell command; ``header_path`` is a file with credentials."""
        text = f"curl -X {self.method} {web_url}{self.path}"
        if header_path:
            text += f" -H {shlex.quote(f'@{header_path}')}"
        if self.body is not None:
            text += f" -H 'Content-Type: application/json' -d '{json.dumps(self.body)}'"
        return text


def _path_of(topic: str) -> str:
    """``persistent/public/default/orders`` of a full topic name."""
    return topic.replace("://", "/")


def limit_calls(scene: Scene, per_s: int) -> list[HttpCall]:
    """The requests that set the limit of a scene to ``per_s`` messages a second."""
    rate = {
        "dispatchThrottlingRateInMsg": per_s,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": scene.relative,
        "ratePeriodInSecond": 1,
    }
    if scene.level is None:
        return []
    if scene.level is Level.BROKER:
        setting = "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg"
        return [HttpCall("POST", f"{setting}/{per_s}")]
    kind = "dispatchRate" if scene.level is Level.TOPIC else "subscriptionDispatchRate"
    return [
        HttpCall("POST", f"/admin/v2/{_path_of(topic)}/{kind}", rate)
        for topic in scene.topic_names()
    ]


def topic_calls(scene: Scene) -> list[HttpCall]:
    """The requests that create a scene's topics and subscriptions, before clients connect."""
    calls = []
    for topic in scene.topic_names():
        calls.append(HttpCall("PUT", f"/admin/v2/{_path_of(topic)}"))
        for subscription in scene.subscriptions:
            path = f"/admin/v2/{_path_of(topic)}/subscription/{subscription}"
            calls.append(HttpCall("PUT", path))
    return calls


def quota_calls(scene: Scene, seconds: float) -> list[HttpCall]:
    """The requests that set the backlog quota of a scene, if any, in a demo of ``seconds``."""
    if not scene.has_quota:
        return []
    quota = {"limitSize": scene.quota_bytes(seconds), "policy": "producer_request_hold"}
    return [
        HttpCall("POST", f"/admin/v2/{_path_of(topic)}/backlogQuota", quota)
        for topic in scene.topic_names()
    ]


class AdminClient:
    """Admin REST and /metrics of one broker."""

    def __init__(
        self, cluster: str, web_url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """``headers`` are credentials, sent with each request."""
        self.cluster = cluster
        self.web_url = web_url
        self._http = urllib3.PoolManager(timeout=_TIMEOUT_S, retries=False, headers=headers)

    def call(self, call: HttpCall) -> None:
        """Carry out a change.

        Raises:
            AdminCallError: it was refused.
        """
        self._request(call.method, call.path, call.body)

    def report(self, topic: str) -> dict[str, Any]:
        """Explain's response about a topic.

        Raises:
            AdminCallError: it was refused.
        """
        path = f"/admin/v2/headgate/explain/{_path_of(topic)}"
        report: dict[str, Any] = json.loads(self._request("GET", path))
        return report

    def stats(self, topic: str) -> dict[str, Any]:
        """A topic's statistics, which are Pulsar's.

        Raises:
            AdminCallError: it was refused.
        """
        path = f"/admin/v2/{_path_of(topic)}/stats"
        stats: dict[str, Any] = json.loads(self._request("GET", path))
        return stats

    def explain(self, topic: str) -> list[Finding]:
        """Explain's judgement of every subscription of a topic.

        Raises:
            AdminCallError: it was refused.
        """
        report = self.report(topic)
        return [from_explain(self.cluster, each) for each in report["subscriptions"]]

    def metrics(self) -> str:
        """The page of /metrics.

        Raises:
            AdminCallError: it was refused.
        """
        return self._request("GET", "/metrics/").decode()

    def close(self) -> None:
        """Close the connections."""
        self._http.clear()

    def _request(self, method: str, path: str, body: Any = None) -> bytes:
        try:
            response = self._http.request(
                method,
                f"{self.web_url}{path}",
                **({} if body is None else {"json": body}),
            )
        except urllib3.exceptions.HTTPError as error:
            raise AdminCallError(f"{method} {self.web_url}{path}: {error}") from error
        if response.status > _OK_MAX:
            reason = response.data.decode(errors="replace")[:300]
            raise AdminCallError(f"{method} {self.web_url}{path}: {response.status} {reason}")
        return response.data
