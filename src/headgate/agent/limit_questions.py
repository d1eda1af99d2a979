"""Asks for the policies and settings from which the limits of a topic follow."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from headgate.access.admin_api import AccessRefusedError
from headgate.agent.cluster_client import ClusterClient
from headgate.agent.limits_reading import LimitAnswers
from headgate.agent.questions import (
    SETTINGS,
    limits_paths,
    namespace_path,
    quotas_path,
    subscription_limit_path,
)
from headgate.agent.quota_reading import QuotaAnswers
from headgate.base.clock import Clock
from headgate.base.units import MIB, NS_PER_S

KEPT_MAX: Final = 1_000
"""Answers that are kept."""
KEPT_BYTES_MAX: Final = 32 * MIB
"""Most bytes of all of them."""
KEPT_NS: Final = 50 * NS_PER_S
"""How long an answer is kept: less than the time between two looks at the same limits."""


class LimitQuestions:
    """The requests about limits. What is shared, the policies of a partitioned topic and of a
    namespace and the settings, is asked once a minute. Several threads may use it at the same
    time."""

    def __init__(self, client: ClusterClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._shared: dict[str, tuple[int, Future[bytes | None]]] = {}
        """When each was asked last, and its answer, which may be under way."""
        self._shared_bytes = 0
        """Of answers that came since none was kept."""

    def ask(self, topic: str, subscriptions: Sequence[str]) -> tuple[LimitAnswers, int]:
        """The answers about a topic and some of its subscriptions, and how many requests went.

        Raises:
            HeadgateError: as :meth:`ClusterClient.get`, but for refused credentials: what the role
                may not read is None.
        """
        sent: list[str] = []
        of_topic = {field: self._kept(path, sent) for field, path in limits_paths(topic).items()}
        found = {
            name: self._kept(subscription_limit_path(topic, name), sent) for name in subscriptions
        }
        answers = LimitAnswers(
            **of_topic,
            by_subscription={name: raw for name, raw in found.items() if raw is not None},
            namespace=self._kept(namespace_path(topic), sent),
            settings=self._kept(SETTINGS, sent),
        )
        return answers, len(sent)

    def ask_quotas(self, namespace: str) -> QuotaAnswers:
        """The answers about the backlog quotas of a namespace.

        Raises:
            HeadgateError: as :meth:`ask`.
        """
        sent: list[str] = []
        return QuotaAnswers(self._policy(quotas_path(namespace)), self._kept(SETTINGS, sent))

    def _kept(self, path: str, sent: list[str]) -> bytes | None:
        """The answer, perhaps of a request before, or of one that another thread sends just now;
        notes in ``sent`` one that goes now."""
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            asked_ns, answer = self._shared.get(path, (0, None))
            is_asked = answer is not None and now_ns - asked_ns < KEPT_NS
            if answer is None or not is_asked:
                if len(self._shared) >= KEPT_MAX or self._shared_bytes > KEPT_BYTES_MAX:
                    self._shared, self._shared_bytes = {}, 0
                answer = Future()
                self._shared[path] = now_ns, answer
        if is_asked:
            return answer.result()
        sent.append(path)
        try:
            found = self._policy(path)
            with self._lock:
                self._shared_bytes += len(found or b"")
            answer.set_result(found)
        except BaseException as error:
            # The next look asks again; those that wait for this answer have none, too.
            with self._lock:
                if self._shared.get(path) == (now_ns, answer):
                    del self._shared[path]
            answer.set_exception(error)
        return answer.result()

    def _policy(self, path: str) -> bytes | None:
        """None if the role may not read it, or the cluster does not have it."""
        try:
            reply = self._client.get(path)
        except AccessRefusedError:
            return None
        return bytes(reply.body) if reply.is_ok else None
