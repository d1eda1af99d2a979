from __future__ import annotations

import enum
import re

import pytest

from headgate.wire import codes
from headgate.wire._generated import PulsarApi_pb2 as generated

PAIRS = [
    (codes.CommandType, generated.BaseCommand.Type),
    (codes.ServerError, generated.ServerError),
    (codes.SubscriptionType, generated.CommandSubscribe.SubType),
    (codes.InitialPosition, generated.CommandSubscribe.InitialPosition),
    (codes.AckType, generated.CommandAck.AckType),
    (codes.ProducerAccessMode, generated.ProducerAccessMode),
    (codes.SchemaType, generated.Schema.Type),
    (codes.LookupResult, generated.CommandLookupTopicResponse.LookupType),
    (codes.PartitionedMetadataResult, generated.CommandPartitionedTopicMetadataResponse.LookupType),
    (codes.TopicListMode, generated.CommandGetTopicsOfNamespace.Mode),
    (codes.CompressionType, generated.CompressionType),
]


def constant_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


@pytest.mark.parametrize(
    ("ours", "theirs"), PAIRS, ids=lambda value: getattr(value, "__name__", "")
)
def test_values_are_the_protocol_s(ours: type[enum.IntEnum], theirs: object) -> None:
    expected = {constant_name(name): number for name, number in theirs.items()}  # type: ignore[attr-defined]
    assert {member.name: member.value for member in ours} == expected


def test_every_enumeration_is_compared() -> None:
    defined = {
        value
        for value in vars(codes).values()
        if isinstance(value, type) and issubclass(value, enum.IntEnum) and value is not enum.IntEnum
    }
    assert defined == {ours for ours, _ in PAIRS}
