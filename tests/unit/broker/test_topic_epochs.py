"""Topic epochs are stored with their topics."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.broker.topic_epochs import TopicEpochs
from headgate.metadata.errors import RefusalError
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_an_epoch_goes_with_its_topic(world: World) -> None:
    broker = world.broker
    epochs = TopicEpochs(broker.catalog, broker.writer)
    name = parse_topic(TOPIC)
    topic = await broker.registry.create(name)
    await epochs.store_epoch(topic, 4)
    row = broker.catalog.topic(TOPIC)
    assert row is not None
    assert row.epoch == 4
    await broker.registry.unload(name)
    loaded = broker.registry.get(name)
    assert loaded is not None
    assert loaded.access is not None
    assert loaded.access.epoch == 4
    await broker.registry.delete(name, force=True)
    with pytest.raises(RefusalError, match="Topic not found"):
        await epochs.store_epoch(topic, 5)
    again = await broker.registry.create(name)
    assert again.access is None
