"""The brokers and clients of the demo, with one folder for their files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from headgate.app.embedded import EmbeddedBroker
from headgate.app.ports import Urls
from headgate.demo import adaptive
from headgate.demo.admin import AdminClient, limit_calls, quota_calls, topic_calls
from headgate.demo.children import Child
from headgate.demo.credentials import (
    CONSUMER,
    PIPELINE,
    PRODUCER,
    UNSECURED,
    Credentials,
)
from headgate.demo.findings import Finding
from headgate.demo.follow import Snapshot, snapshot_of
from headgate.demo.rule import Sample, parse_scrape
from headgate.demo.scenes import SETTINGS, Scene, Subject, clusters
from headgate.demo.workers import BacklogSpec, ConsumerSpec, ProducerSpec, WorkSpec

_CONNECTED_S: Final = 30.0
_PUBLISHED_S: Final = 60.0
_EXPLAINED_S: Final = 60.0
_PRIORITY: Final = -10
"""Brokers and clients need little time, but at once. A broker that is a tenth of a second late in
each turn delivers less than its limits allow, and explain then blames the broker."""
_SWITCH_INTERVAL_S: Final = 0.000_5
"""The brokers and the display share this interpreter. A switch between threads takes milliseconds
on a busy machine, so it must not happen in every turn."""
_SETTINGS: Final = {
    "headgateTelemetryIntervalMs": "1000",
    # With --keep the brokers may stay for days.
    "headgateTelemetryRetentionSizeInMB": "256",
}
_ROLES: Final = {"backlogs": PRODUCER, "producers": PRODUCER, "consumers": CONSUMER}
"""The role of each client process, by its name."""


class Stage:
    """Brokers with the scenes' topics and limits, and the scenes' clients. A context manager."""

    def __init__(
        self,
        folder: Path,
        scenes: Sequence[Scene],
        seconds: float,
        kept_s: float = 0.0,
        credentials: Credentials = UNSECURED,
    ) -> None:
        """``folder`` holds the brokers' data and the clients' logs; the situations develop for
        ``seconds``, and last ``kept_s`` after the last step. The brokers ask for
        ``credentials``."""
        self._folder = folder
        self._credentials = credentials
        self._seconds = seconds
        self._kept_s = kept_s
        self._scenes = tuple(scenes)
        self._stack = ExitStack()
        self._workers: list[Child] = []
        self.urls: dict[str, Urls] = {}
        """By cluster."""
        self._admins: dict[str, AdminClient] = {}

    def start_brokers(self) -> None:
        """Start a broker for each cluster, with the scenes' topics, subscriptions and limits.

        Raises:
            HeadgateError: a broker cannot start.
        """
        _raise_priority()
        self._stack.callback(sys.setswitchinterval, sys.getswitchinterval())
        for cluster in clusters(self._scenes):
            data = str(self._folder / cluster)
            self._make_old_backlogs(cluster, data)
            broker = EmbeddedBroker(data, self._settings(cluster, _SETTINGS))
            self._stack.enter_context(broker)
            self.urls[cluster] = broker.urls
            roles = (PRODUCER, CONSUMER, PIPELINE)
            self._admins[cluster] = self._admin_of(cluster, broker, roles, self._stack)
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        for scene in self._scenes:
            # Topics with an old backlog exist already.
            made = [] if scene.relative else topic_calls(scene)
            limits = limit_calls(scene, scene.limit_per_s) + quota_calls(scene, self._seconds)
            for call in [*made, *limits]:
                self._admins[scene.cluster].call(call)

    def _make_old_backlogs(self, cluster: str, data: str) -> None:
        """Publish the old backlogs to a broker that then ends.

        The restart makes them old. Without it the broker would count the messages in its present
        publish rate, and a relative limit would begin with that rate. This broker publishes no
        telemetry: in the tables the backlog would otherwise grow in the demo's first minute.
        """
        scenes = [each for each in self._scenes if each.cluster == cluster and each.relative]
        if not scenes:
            return
        settings = self._settings(cluster, {"headgateTelemetryEnabled": "false"})
        with EmbeddedBroker(data, settings) as broker, ExitStack() as stack:
            admin = self._admin_of(cluster, broker, (PRODUCER,), stack)
            for scene in scenes:
                for call in topic_calls(scene):
                    admin.call(call)
            spec = old_backlogs(scenes, broker.urls.broker, self._seconds, self._kept_s)
            with self._client("backlogs", spec) as child:
                child.next_line(_PUBLISHED_S)

    def _settings(self, cluster: str, more: Mapping[str, str]) -> dict[str, str]:
        """Settings of a broker: those of its cluster, those of credentials, and ``more``."""
        ours = SETTINGS.get(cluster, {})
        return {"clusterName": cluster, **more, **ours, **self._credentials.settings}

    def _admin_of(
        self, cluster: str, broker: EmbeddedBroker, roles: Sequence[str], stack: ExitStack
    ) -> AdminClient:
        """Admin REST of a broker, which gives ``roles`` their rights; ``stack`` closes it."""
        admin = AdminClient(cluster, broker.urls.web, self._credentials.headers)
        stack.callback(admin.close)
        for call in self._credentials.grant_calls(*roles):
            admin.call(call)
        return admin

    def _client(self, name: str, spec: WorkSpec) -> Child:
        spec = replace(spec, token_path=self._credentials.token_path(_ROLES[name]))
        return Child(name, ["headgate.demo.workers", spec.to_json()], self._folder)

    def connect_clients(self) -> None:
        """Start the producers and the consumers, each kind in one process; nothing flows yet.

        Raises:
            ChildFailedError: a process could not connect.
        """
        urls = {cluster: each.broker for cluster, each in self.urls.items()}
        work = client_work(self._scenes, urls, self._seconds)
        for name, spec in work.items():
            self._workers.append(self._stack.enter_context(self._client(name, spec)))
        for child in self._workers:
            child.next_line(_CONNECTED_S)

    def start_publishing(self) -> None:
        """Let the producers publish."""
        for child in self._workers:
            child.send("go")

    def end_clients(self) -> None:
        """End the producers and the consumers; the brokers stay."""
        for child in self._workers:
            child.end()
        self._workers.clear()

    def explain(self) -> dict[Subject, Finding]:
        """The present finding of explain for every subscription of the scenes.

        Raises:
            HeadgateError: a client process has ended, or a broker refused.
        """
        self.check_clients()
        return {
            finding.subject: finding
            for scene in self._scenes
            for topic in scene.topic_names()
            for finding in self._admins[scene.cluster].explain(topic)
        }

    def check_clients(self) -> None:
        """Check that the producers and consumers are still there.

        Raises:
            ChildFailedError: one of their processes has ended.
        """
        for child in self._workers:
            child.check()

    def limit_snapshot(self, subject: Subject) -> Snapshot:
        """The present amount of the relative limit over a subscription.

        Raises:
            AdminCallError: the broker refused.
        """
        return snapshot_of(self._admins[subject.cluster].report(subject.topic), subject)

    def adaptive_snapshot(self, pair: adaptive.Neighbours) -> adaptive.Snapshot:
        """The present use of the backlog quota, and the publish rates of both producers.

        Raises:
            AdminCallError: the broker refused.
        """
        admin = self._admins[pair.slowed[0].cluster]
        report = admin.report(pair.slowed[0].topic)
        other = pair.other[0].topic
        return adaptive.snapshot_of(
            report,
            adaptive.publishing(report, admin.stats(pair.slowed[0].topic)),
            adaptive.publishing(admin.report(other), admin.stats(other)),
        )

    def explain_text(self, subject: Subject, width: int) -> str:
        """The text of ``headgate explain`` about a topic, up to its subscriptions, in lines of at
        most ``width``.

        Raises:
            ChildFailedError: it failed.
        """
        words = ["headgate.cli", "explain", subject.topic]
        words += ["--admin-url", self.urls[subject.cluster].web]
        if self._credentials.is_secured:
            words += ["--config", self._credentials.config_path]
        width_is = {"COLUMNS": str(width)}
        with Child("explain", words, self._folder, environment=width_is) as child:
            return "\n".join(iter(partial(child.next_line, _EXPLAINED_S), ""))

    def scrape(self) -> dict[Subject, Sample]:
        """The rule's series from /metrics of every broker."""
        found: dict[Subject, Sample] = {}
        for admin in self._admins.values():
            found.update(parse_scrape(admin.metrics()))
        return found

    def admin(self, cluster: str) -> AdminClient:
        """Admin REST of a cluster."""
        return self._admins[cluster]

    def __enter__(self) -> Stage:
        """Return the stage; nothing runs yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End clients and brokers."""
        self._stack.close()


def _raise_priority() -> None:
    """Raise the priority of this process and its children, if that is allowed and the user has
    not set one."""
    if os.getpriority(os.PRIO_PROCESS, 0) == 0:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)


def old_backlogs(
    scenes: Sequence[Scene], broker_url: str, seconds: float, kept_s: float = 0.0
) -> WorkSpec:
    """The messages to publish before a demo of ``seconds`` begins, which lasts ``kept_s`` more."""
    return WorkSpec(
        backlogs=tuple(
            BacklogSpec(broker_url, topic, scene.old_backlog(seconds, kept_s))
            for scene in scenes
            for topic in scene.topic_names()
        )
    )


def client_work(
    scenes: Sequence[Scene], broker_urls: dict[str, str], seconds: float
) -> dict[str, WorkSpec]:
    """The work of the two client processes in a demo of ``seconds``, by name.

    Consumers come first: they connect before anything is published.
    """
    consumers = tuple(
        ConsumerSpec(
            broker_urls[scene.cluster], topic, subscription, scene.consume_per_s, scene.queue_size
        )
        for scene in scenes if scene.has_consumer
        for topic in scene.topic_names()
        for subscription in scene.subscriptions
    )  # fmt: skip
    producers = tuple(
        ProducerSpec(
            broker_urls[scene.cluster], topic, scene.rates_per_s, scene.phase_s(seconds),
            scene.pending_max,
        )
        for scene in scenes
        for topic in scene.topic_names()
    )  # fmt: skip
    return {"consumers": WorkSpec(consumers=consumers), "producers": WorkSpec(producers=producers)}
