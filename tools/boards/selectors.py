"""Labels and variables of the boards' queries."""

from __future__ import annotations

from typing import Any, Final

OF_CLUSTER: Final = 'cluster=~"$cluster"'
OF_NAMESPACE: Final = f'{OF_CLUSTER},namespace=~"$namespace"'
OF_TOPIC: Final = f'{OF_NAMESPACE},topic=~"$topic"'

TOPIC: Final = "cluster, namespace, topic, partition"
"""Labels of a topic. ``partition`` is there with splitTopicAndPartitionLabelInPrometheus only."""
SUBSCRIPTION: Final = f"{TOPIC}, subscription"

CONSUMER_STATES: Final = (
    'state=~"awaiting_ack|unacked_limit|no_permits|socket_full|key_blocked|throttled_.*",'
    'consumer!="hungry"'
)
"""The parts of the account of time that blame a consumer (docs/telemetry.md)."""
BROKER_STATES: Final = 'state=~"storage|dispatching|transition|stuck"'
LIMIT_STATES: Final = 'state=~"throttled_.*",consumer="hungry"'

STATE_SECONDS: Final = "headgate_subscription_state_seconds_total"


def top(expression: str) -> str:
    """Only the largest: a board never draws all topics."""
    return f"topk($top, {expression})"


def variables(source: str) -> list[dict[str, Any]]:
    """The variables of a board; clusters and namespaces are those of the series ``source``."""
    return [
        _variable("datasource", "datasource", "Data source", query="prometheus"),
        _query("cluster", "Cluster", f"label_values({source}, cluster)"),
        _query("namespace", "Namespace", f'label_values({source}{{{OF_CLUSTER}}}, namespace)'),
        # A list of all topics may have a hundred thousand lines.
        _text("topic", "Topic (regular expression)", ".*"),
        _variable(
            "top", "custom", "Largest", query="10,20,50",
            current={"text": "10", "value": "10", "selected": True},
            options=[{"text": n, "value": n, "selected": n == "10"} for n in ("10", "20", "50")],
        ),
        _text("page", "Broker's page", "http://localhost:8080"),
    ]  # fmt: skip


def _query(name: str, label: str, query: str) -> dict[str, Any]:
    return _variable(
        name, "query", label,
        datasource={"type": "prometheus", "uid": "${datasource}"},
        query={"qryType": 1, "query": query, "refId": name},
        refresh=2, sort=1, multi=True, includeAll=True, allValue=".*",
        current={"text": ["All"], "value": ["$__all"], "selected": True},
    )  # fmt: skip


def _text(name: str, label: str, value: str) -> dict[str, Any]:
    current = {"text": value, "value": value, "selected": True}
    return _variable(name, "textbox", label, query=value, current=current, options=[current])


def _variable(name: str, kind: str, label: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "label": label, "hide": 0, "skipUrlSync": False, **fields}
