"""What the boards show: only series that exist, every alert, and never all topics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from boards.alert_rules import RULES, alerts_of
from boards.selectors import BROKER_STATES, CONSUMER_STATES, LIMIT_STATES
from generate_boards import boards
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from headgate.agent.series import AGENT_SERIES
from headgate.flow.account.account import LABELS
from headgate.flow.account.verdict import BLAME, Verdict
from headgate.telemetry.prometheus.series.catalogue import SERIES

BOARDS = boards()
PLAIN = "plain-pulsar"
GOLDEN = Path(__file__).parents[1] / "telemetry/prometheus/golden/metrics-4.0.8.txt"
_SERIES = re.compile(r"\b(?:pulsar|headgate)_\w+")
_SELECTOR = re.compile(r"\b((?:pulsar|headgate)_\w+)\{([^}]*)\}")


@pytest.fixture(params=BOARDS, ids=str)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = BOARDS[request.param]
    return found


def panels(found: dict[str, Any]) -> list[dict[str, Any]]:
    """All panels that draw something."""
    every = [each for panel in found["panels"] for each in (panel, *panel.get("panels", ()))]
    return [each for each in every if each["type"] != "row"]


def expressions(found: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in panels(found) for target in panel["targets"]]


def alerts() -> dict[str, str]:
    """The expression of each alert."""
    return {
        alert.name: alert.expression
        for path in RULES.glob("*.rules.yml")
        for alert in alerts_of(path.name.removesuffix(".rules.yml")).values()
    }


def test_every_series_exists_with_the_labels_by_which_it_is_chosen(board: dict[str, Any]) -> None:
    labels: dict[str, set[str]] = {}
    for series in (*SERIES, *AGENT_SERIES):
        labels.setdefault(series.name, {"partition"}).update(series.labels)
    for expression in expressions(board):
        assert set(_SERIES.findall(expression)) <= labels.keys(), expression
        for name, selector in _SELECTOR.findall(expression):
            chosen = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", selector))
            assert chosen <= labels[name], expression


def test_variables_come_from_series_that_exist(board: dict[str, Any]) -> None:
    queries = [each["query"]["query"] for each in board["templating"]["list"]
               if each["type"] == "query"]  # fmt: skip
    assert len(queries) == 2
    names = {name for query in queries for name in _SERIES.findall(query)}
    assert names <= {series.name for series in SERIES}


def test_every_alert_is_a_panel_of_its_name_and_expression() -> None:
    shown = {
        (panel["title"], target["expr"])
        for found in BOARDS.values()
        for panel in panels(found)
        for target in panel["targets"]
    }
    assert set(alerts().items()) <= shown


def test_of_topics_only_the_largest_are_drawn(board: dict[str, Any]) -> None:
    """A query about topics is a top-N, one sum, or the expression of an alert."""
    known = set(alerts().values())
    for expression in expressions(board):
        if 'topic=~"$topic"' in expression and expression not in known:
            assert re.match(r"(topk|bottomk)\(\$top, |(sum|max|count)\(", expression), expression


def test_the_board_for_any_pulsar_uses_what_a_pulsar_4_0_gives() -> None:
    given = {re.split(r"[{ ]", line)[0] for line in GOLDEN.read_text().splitlines()}
    used = {name for each in expressions(BOARDS[PLAIN]) for name in _SERIES.findall(each)}
    assert used
    assert used <= given


def test_grafana_reads_every_field(board: dict[str, Any]) -> None:
    """Its schema's classes lose fields that it does not have."""
    plugins.register_default_plugins()
    read = Dashboard.from_json(board)
    written = json.loads(JSONEncoder().encode(read))
    assert lost(board, written) == []


def lost(value: Any, other: Any, where: str = "") -> list[str]:
    """Places at which ``other`` lacks or changes something of ``value``."""
    if isinstance(value, dict) and isinstance(other, dict):
        return [
            each
            for key in value
            for each in (lost(value[key], other[key], f"{where}/{key}") if key in other
                         else [f"{where}/{key}"])
        ]  # fmt: skip
    if isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
        pairs = zip(value, other, strict=True)
        return [e for n, pair in enumerate(pairs) for e in lost(*pair, f"{where}/{n}")]
    return [] if value == other else [where]


def test_titles_and_meanings_are_there_and_names_differ() -> None:
    for found in BOARDS.values():
        assert found["description"]
        for panel in panels(found):
            assert panel["title"]
            assert panel["description"]
    assert len({found["uid"] for found in BOARDS.values()}) == len(BOARDS)


@pytest.mark.parametrize(
    ("selector", "blamed"),
    [
        (CONSUMER_STATES, {Verdict.CONSUMER}),
        (BROKER_STATES, {Verdict.BROKER}),
        (LIMIT_STATES, {Verdict.THROTTLED_SUBSCRIPTION, Verdict.THROTTLED_TOPIC,
                        Verdict.THROTTLED_BROKER}),
    ],
    ids=["consumer", "broker", "limit"],
)  # fmt: skip
def test_states_are_chosen_as_the_verdict_blames_them(selector: str, blamed: set[Verdict]) -> None:
    states = re.search(r'state=~"([^"]+)"', selector)
    consumer = re.search(r'consumer(!?=)"([^"]+)"', selector)
    assert states is not None

    def is_chosen(state: str, of: str) -> bool:
        if not re.fullmatch(states[1], state):
            return False
        return consumer is None or (of == consumer[2]) is (consumer[1] == "=")

    for labels, verdict in zip(LABELS, BLAME, strict=True):
        assert is_chosen(labels.state.value, labels.consumer) is (verdict in blamed), labels
    # The alerts choose the same.
    assert any(selector in expression for expression in alerts().values())
