"""Sources of the limits of topics, as far as telemetry has them."""

from __future__ import annotations

from typing import Any

from headgate.flow.limits.precedence import ADAPTIVE_SOURCE, TOPIC_POLICY
from headgate.pipeline.backtest.limit_sources import (
    IS_ADAPTIVE,
    LIMIT_COLUMNS,
    SOURCE_COLUMNS,
    VALUE_COLUMNS,
    LimitSources,
    Setting,
    is_complete,
    known_name,
    namespaces_of,
    value_name,
    with_older,
)
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.intervals import INTERVALS


def row(topic: str, publish: str | None, *, is_known: bool = True, **more: Any) -> dict[str, Any]:
    """A topic with nothing but a publish limit in force."""
    nothing = dict.fromkeys([*SOURCE_COLUMNS.values(), *map(value_name, Setting)])
    known = {known_name(setting): True for setting in Setting}
    own = {"publish_limit_source": publish, "publish_limit_source_known": is_known}
    return {"topic": f"persistent://{topic}"} | nothing | known | own | {IS_ADAPTIVE: False} | more


def test_topic_policies_are_separate_from_other_sources() -> None:
    (found,) = namespaces_of(
        [
            row("a/b/of-namespace", "namespace policy a/b"),
            row("a/b/own", TOPIC_POLICY),
            row("a/b/beside", f"{ADAPTIVE_SOURCE} and {TOPIC_POLICY}"),
            row("a/b/of-broker", "broker setting x and y"),
            row("a/b/none", None),
            row("a/b/hidden", None, is_known=False),
        ]
    )
    assert found.name == "a/b"
    own = ("persistent://a/b/beside", "persistent://a/b/own")
    assert found.levels[Setting.PUBLISH] == LimitSources(own, others=3, unknown=1)
    assert found.levels[Setting.SIZE_QUOTA] == LimitSources(others=6)


def test_an_older_row_completes_a_newer_one() -> None:
    hidden, own = row("a/b/x", ADAPTIVE_SOURCE, is_known=False), row("a/b/x", TOPIC_POLICY)
    assert with_older(hidden, own) == own
    assert with_older(own, hidden) == own
    moved = own | {"quota_size_source": "namespace policy a/b", "publish_limit_source": None}
    assert with_older(hidden | {"quota_size_source": None}, moved) == own | {
        "publish_limit_source": None
    }
    assert is_complete(own)
    assert not is_complete(hidden)


def test_settings_and_namespaces_are_apart_and_in_order() -> None:
    quota = {"quota_size_source": TOPIC_POLICY}
    found = namespaces_of([row("b/x/t", None, **quota), row("a/x/y/t", None)])
    assert [namespace.name for namespace in found] == ["a/x/y", "b/x"]
    assert found[1].levels[Setting.SIZE_QUOTA] == LimitSources(("persistent://b/x/t",))
    assert found[1].levels[Setting.TIME_QUOTA] == LimitSources(others=1)


def test_a_name_that_two_clusters_have_is_one_topic() -> None:
    rows = [row("a/b/t", TOPIC_POLICY, cluster="x"), row("a/b/t", None, cluster="y")]
    (found,) = namespaces_of(rows)
    assert found.levels[Setting.PUBLISH] == LimitSources(("persistent://a/b/t",))
    assert found.levels[Setting.SIZE_QUOTA] == LimitSources(others=1)


def test_values_in_force_are_known_for_each_topic_and_for_the_others() -> None:
    def limit(messages: float | None) -> dict[str, Any]:
        fields = dict(zip(VALUE_COLUMNS[Setting.PUBLISH], (messages, None), strict=True))
        return {value_name(Setting.PUBLISH): fields}

    (found,) = namespaces_of(
        [
            row("a/b/own", TOPIC_POLICY, cluster="x", **limit(5.0)),
            row("a/b/own", TOPIC_POLICY, cluster="y", **limit(6.0)),
            row("a/b/one", "namespace policy a/b", **limit(7.0)),
            row("a/b/two", None, **{IS_ADAPTIVE: True}),
        ]
    )
    levels = found.levels[Setting.PUBLISH]
    assert levels.own_values == {"persistent://a/b/own": {(5.0, None), (6.0, None)}}
    assert levels.other_values == {(7.0, None), (None, None)}
    assert found.is_adaptive


def test_the_columns_are_those_of_the_tables() -> None:
    for table in (BRONZE_SAMPLES, INTERVALS):
        names = set(table.column_names())
        assert set(SOURCE_COLUMNS.values()) <= names
        assert {name for limits in LIMIT_COLUMNS.values() for name in limits} <= names
        assert {name for values in VALUE_COLUMNS.values() for name in values} <= names
