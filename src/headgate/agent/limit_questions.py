"""Asks for the policies and settings from which the limits of a topic follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.access.admin_api import AccessRefusedError
from headgate.agent.cluster_client import ClusterClient
from headgate.agent.limits_reading import LimitAnswers
from headgate.agent.questions import (
    SETTINGS,
    limits_paths,
    namespace_path,
    subscription_limit_path,
)
from headgate.base.clock import Clock
from headgate.base.units import NS_PER_MINUTE

NAMESPACES_MAX: Final = 1_000
"""Namespaces whose policies are kept."""


class LimitQuestions:
    """The requests about limits. What topics share, the policies of a namespace and the settings,
    is asked once a minute. Several threads may use it at the same time."""

    def __init__(self, client: ClusterClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._shared: dict[str, tuple[int, bytes | None]] = {}

    def ask(self, topic: str, subscriptions: Sequence[str]) -> tuple[LimitAnswers, int]:
        """The answers about a topic and some of its subscriptions, and how many requests went.

        Raises:
            HeadgateError: as :meth:`ClusterClient.get`, but for refused credentials: what the role
                may not read is None.
        """
        of_topic = {field: self._policy(path) for field, path in limits_paths(topic).items()}
        found = {name: self._policy(subscription_limit_path(topic, name)) for name in subscriptions}
        namespace, first = self._shared_policy(namespace_path(topic))
        settings, second = self._shared_policy(SETTINGS)
        answers = LimitAnswers(
            **of_topic,
            by_subscription={name: raw for name, raw in found.items() if raw is not None},
            namespace=namespace,
            settings=settings,
        )
        return answers, len(of_topic) + len(found) + first + second

    def _shared_policy(self, path: str) -> tuple[bytes | None, int]:
        """The answer, and how many requests it took."""
        now_ns = self._clock.monotonic_ns()
        kept = self._shared.get(path)
        if kept is not None and now_ns - kept[0] < NS_PER_MINUTE:
            return kept[1], 0
        if len(self._shared) >= NAMESPACES_MAX:
            self._shared = {}
        answer = self._policy(path)
        self._shared[path] = now_ns, answer
        return answer, 1

    def _policy(self, path: str) -> bytes | None:
        """None if the role may not read it, or the cluster does not have it."""
        try:
            reply = self._client.get(path)
        except AccessRefusedError:
            return None
        return reply.body if reply.is_ok else None
