"""The tables of instruments: complete, well formed, and what their readers really give."""

from __future__ import annotations

import asyncio
import re

from headgate.base.names import parse_topic
from headgate.telemetry.otel.instruments import (
    ADAPTIVE_INSTRUMENTS,
    ADAPTIVE_TOPIC_INSTRUMENTS,
    BY_NAME,
    INSTRUMENTS,
    Instrument,
    Kind,
)
from headgate.telemetry.otel.measurements import Batch
from headgate.telemetry.prometheus.series.adaptive import ADAPTIVE_SERIES, ADAPTIVE_TOPIC_SERIES
from headgate.telemetry.prometheus.series.catalogue import SERIES
from headgate.telemetry.prometheus.series.topics import LEFT_OUT_SERIES
from headgate.testing import World
from tests.unit.telemetry.otel.test_measurements import everything
from tests.unit.telemetry.support import (
    ADAPTIVE_SETTINGS,
    NAME,
    fill_disk_up,
    limit,
    publish,
    quota,
    topic_of,
)

UNIT = re.compile(r"\{[a-z]+\}(/s)?|By(/s)?|m?s|1|1/s")
OPTIONAL = {"pulsar.partition.index", "dimension", "consumer"}
"""Of topics that are no partition, and of states that are no wait at a limit, there is none."""
CONNECTIONS = BY_NAME["pulsar.broker.connection.count"]
ALL = [instrument for _, _, table in INSTRUMENTS for instrument in table]


def test_every_instrument_is_well_formed_and_explained() -> None:
    for _, _, table in INSTRUMENTS:
        names = [instrument.name for instrument in table]
        assert len(set(names)) == len(names)
    for instrument in ALL:
        assert re.fullmatch(r"(pulsar\.broker|headgate)(\.[a-z_]+)+", instrument.name)
        assert UNIT.fullmatch(instrument.unit), instrument
        assert instrument.meaning.endswith(".")
        known = BY_NAME[instrument.name]
        same = (known.kind, known.unit, known.meaning, known.attributes)
        expected = instrument.kind, instrument.unit, instrument.meaning, instrument.attributes
        assert same == expected


def test_headgates_own_series_are_all_here() -> None:
    by_pulsars_names = {*ADAPTIVE_SERIES[:6], *ADAPTIVE_TOPIC_SERIES}
    of_the_page = set(LEFT_OUT_SERIES)  # the export leaves no topic out
    ours = {
        series.name: series
        for series in SERIES
        if series.name.startswith("headgate_") and series not in by_pulsars_names | of_the_page
    }
    names = {name.removesuffix("_total").replace("_", "."): name for name in ours}
    assert {name for name in BY_NAME if name.startswith("headgate.")} == set(names)
    for name, series_name in names.items():
        is_counter = ours[series_name].type == "counter"
        assert (BY_NAME[name].kind is Kind.COUNTER) == is_counter


def test_readers_give_the_attributes_of_the_tables_and_nothing_else() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        client = await world.connect()
        plan = broker.catalog.plan_create_partitioned(
            parse_topic(f"{NAME}-parts"), 2, now_ms=world.wall_ms()
        )
        await broker.writer.commit(plan)
        await publish(world, 5, f"{NAME}-parts-partition-1")
        await publish(world, 5)
        await client.subscribe(NAME, "s")
        broker.settings.set("dispatchThrottlingRateInMsg", "1000")
        await limit(broker, 50)
        await limit(broker, 60, of="topic")
        await quota(broker, limit_size=1_000)
        producer = await client.producer(NAME)
        for _ in range(12):
            producer.send_nowait(bytes(100))
            await asyncio.sleep(1)
        fill_disk_up(broker)
        broker.tls.expires_at_s = 1_800_000_000
        broker.engine.topics[NAME].publishing.duplicates_dropped = 3
        taken = await everything(broker)
        assert set(taken) == set(BY_NAME)
        for name, values in taken.items():
            tables = [
                {*subjects, *instrument.attributes}
                for _, subjects, table in INSTRUMENTS
                for instrument in table
                if instrument.name == name
            ]
            for value in values:
                names = set(value.attributes)
                assert any(names <= all_ and all_ - names <= OPTIONAL for all_ in tables), value

    anonymous = {"authenticationEnabled": "true", "anonymousUserRole": "anyone"}
    with World(settings={**ADAPTIVE_SETTINGS, **anonymous}) as world:
        world.run(scenario(world))


def test_one_that_reads_nothing_is_absent() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        topic = await publish(world, 1)
        assert topic is topic_of(broker)
        batch = Batch()
        absent = Instrument("pulsar.broker.absent", Kind.GAUGE, "1", "Not there.", lambda *_: None)
        batch.take(broker.engine.now_ms, [((absent, CONNECTIONS), broker)], {}, 0)
        assert list(batch.by_name) == [CONNECTIONS.name]
        names = set(await everything(broker))
        adaptive = (*ADAPTIVE_INSTRUMENTS, *ADAPTIVE_TOPIC_INSTRUMENTS)
        assert names.isdisjoint(instrument.name for instrument in adaptive)

    with World() as world:
        world.run(scenario(world))
