"""The version of an equal definition is found without reading all versions each time."""

from __future__ import annotations

import json

import pytest

from headgate.base.names import TopicName, parse_topic
from headgate.base.schema_types import SchemaType
from headgate.broker.schemas import version_index
from headgate.broker.schemas.version_index import VersionIndex
from headgate.metadata.rows import SchemaRow
from headgate.schema.definition import Definition
from tests.unit.metadata.catalog_rig import Broker, T
from tests.unit.schema.running import counted, outcome


def avro(number: int, **more: object) -> Definition:
    value = {"type": "record", "name": f"R{number}", "fields": [], **more}
    return Definition(SchemaType.AVRO, json.dumps(value).encode())


def add(broker: Broker, schema: Definition, topic: TopicName = T) -> None:
    row = SchemaRow(type=schema.type, data=schema.data)
    latest = broker.catalog.latest_schema(topic)
    broker.do(broker.catalog.plan_schema(topic, row, latest, needs_topic=False))


def test_equal_definitions_have_the_oldest_version() -> None:
    broker = Broker()
    index = VersionIndex(broker.catalog)
    assert outcome(index.find(T, avro(0))) is None
    for number in (0, 1):
        add(broker, avro(number))
    assert outcome(index.find(T, avro(1))) == 1
    assert outcome(index.find(T, avro(0, doc="x"))) == 0
    assert outcome(index.find(T, avro(2, doc="x"))) is None
    json_type = Definition(SchemaType.JSON, avro(0, doc="x").data)
    assert outcome(index.find(T, json_type)) is None


def test_only_what_is_new_is_read_again() -> None:
    broker = Broker()
    index = VersionIndex(broker.catalog)
    for number in range(100):
        add(broker, avro(number))
    found, first = counted(index.find(T, avro(5, doc="x")))
    assert found == 5
    add(broker, avro(100))
    found, second = counted(index.find(T, avro(100, doc="x")))
    assert found == 100
    assert second < first / 5
    latest = broker.catalog.latest_schema(T)
    assert latest is not None
    broker.do(broker.catalog.plan_delete_schema(T, latest, force=True, now_ms=1))
    add(broker, avro(7))
    assert outcome(index.find(T, avro(7, doc="x"))) == 0
    assert outcome(index.find(T, avro(5, doc="x"))) is None


def test_the_index_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_index, "INDEXED_MAX", 10)
    broker = Broker()
    index = VersionIndex(broker.catalog)
    for name in range(8):
        topic = parse_topic(f"t{name}")
        for number in range(3):
            add(broker, avro(number), topic)
        assert outcome(index.find(topic, avro(1, doc="x"))) == 1
        assert len(index) <= 10
    assert outcome(index.find(parse_topic("t0"), avro(2, doc="x"))) == 2


def test_rows_that_earlier_releases_did_not_check() -> None:
    broker = Broker()
    index = VersionIndex(broker.catalog)
    add(broker, Definition(SchemaType.AVRO, b"no json"))
    assert outcome(index.find(T, Definition(SchemaType.AVRO, b"no json"))) == 0
    assert outcome(index.find(T, avro(0))) is None
