from __future__ import annotations

import pulsar
import pytest

from pyspark_pulsar.message_ids import MessageIds


@pytest.mark.parametrize("partition", [-1, 0, 7, 1_000])
@pytest.mark.parametrize("place", [(0, 0), (5, 7), (1 << 40, (1 << 31) + 3)])
def test_ids_are_those_of_the_client(place: tuple[int, int], partition: int) -> None:
    (found,) = MessageIds(partition).of(place, [-1], 0, place)
    assert found == pulsar.MessageId(partition, *place, -1).serialize()
    indexes = [0, 1, 127, 128, 5_000]
    for index, each in zip(
        indexes, MessageIds(partition).of(place, indexes, 300, place), strict=True
    ):
        read = pulsar.MessageId.deserialize(each)
        assert (read.ledger_id(), read.entry_id()) == place
        assert (read.partition(), read.batch_index()) == (partition, index)
        assert read.serialize() == each


def test_a_message_in_chunks_names_the_first_one() -> None:
    (found,) = MessageIds(-1).of((5, 9), [-1], 0, (4, 2))
    assert found.hex() == "08051009" + "3a04" + "08041002"
    assert pulsar.MessageId.deserialize(found).serialize() == found


@pytest.mark.parametrize("partition", [-1, 300])
def test_ids_of_many_entries_are_those_of_the_client(partition: int) -> None:
    entry_ids = [0, 1, 127, 128, 129, 255, 256, 16_383, 16_384, 16_511, 16_512, 1 << 40, 3]
    places = [(ledger_id, entry_id) for ledger_id in (5, 300, 5) for entry_id in entry_ids]
    found = MessageIds(partition).of_entries(places)
    assert found == [pulsar.MessageId(partition, *place, -1).serialize() for place in places]
