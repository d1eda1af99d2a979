"""Samples of the registry of schemas: one set for each namespace that was asked about."""

from __future__ import annotations

from headgate.base.names import NamespaceName
from headgate.broker.schemas.figures import SchemaFigures, SchemaOperation
from headgate.telemetry.prometheus.page import Page
from headgate.telemetry.prometheus.schema_lines import SchemaLines
from headgate.telemetry.prometheus.series.schemas import SCHEMA_SERIES


def lines_of(figures: SchemaFigures) -> list[str]:
    page = Page()
    SchemaLines(figures, page.lines_of).add(lambda namespace: f'{{namespace="{namespace}"')
    return [line for series in SCHEMA_SERIES for line in page.lines_of(series)]


def test_nothing_was_asked() -> None:
    assert lines_of(SchemaFigures(lambda _: True)) == []


def test_operations_and_comparisons_of_a_namespace() -> None:
    figures, name = SchemaFigures(lambda _: True), NamespaceName.parse("acme/n")
    figures.done(name, SchemaOperation.PUT, 1_500_000)
    figures.done(name, SchemaOperation.PUT, 1_000_000)
    figures.failed(name, SchemaOperation.DELETE)
    figures.compared(name, is_compatible=False)
    assert lines_of(figures) == [
        'pulsar_schema_get_ops_latency_count{namespace="acme/n"} 0',
        'pulsar_schema_get_ops_latency_sum{namespace="acme/n"} 0.000',
        'pulsar_schema_put_ops_latency_count{namespace="acme/n"} 2',
        'pulsar_schema_put_ops_latency_sum{namespace="acme/n"} 2.500',
        'pulsar_schema_del_ops_latency_count{namespace="acme/n"} 0',
        'pulsar_schema_del_ops_latency_sum{namespace="acme/n"} 0.000',
        'pulsar_schema_get_ops_failed_total{namespace="acme/n"} 0',
        'pulsar_schema_put_ops_failed_total{namespace="acme/n"} 0',
        'pulsar_schema_del_ops_failed_total{namespace="acme/n"} 1',
        'pulsar_schema_compatible_total{namespace="acme/n"} 0',
        'pulsar_schema_incompatible_total{namespace="acme/n"} 1',
    ]
