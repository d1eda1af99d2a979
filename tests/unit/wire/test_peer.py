"""What a client understands follows from its protocol version and its features."""

from __future__ import annotations

import pytest

from headgate.wire.messages import CommandConnect
from headgate.wire.peer import peer_of


@pytest.mark.parametrize(
    ("version", "spoken"), [(-5, 0), (0, 0), (15, 15), (21, 21), (22, 21), (2**31 - 1, 21)]
)
def test_the_lower_version_is_spoken(version: int, spoken: int) -> None:
    assert peer_of(CommandConnect(client_version="c", protocol_version=version)).version == spoken


def test_what_each_version_understands() -> None:
    peers = [
        peer_of(CommandConnect(client_version="c", protocol_version=version))
        for version in range(22)
    ]
    first = {
        "knows_ping": 1,
        "knows_close": 5,
        "knows_checksums": 11,
        "knows_active_consumer_change": 12,
    }
    for name, version in first.items():
        assert [getattr(peer, name) for peer in peers] == [v >= version for v in range(22)]


@pytest.mark.parametrize(
    ("client", "version", "knows"),
    [
        ("Pulsar-Java-v4.0.8", 20, True),
        ("Pulsar-Java-v4.0.8", 8, False),
        ("Pulsar-CPP-v4.2.0", 21, False),
        ("Pulsar-Go-0.19.0", 20, False),
    ],
)
def test_only_the_java_client_knows_the_end_of_a_topic(
    client: str, version: int, knows: bool
) -> None:
    peer = peer_of(CommandConnect(client_version=client, protocol_version=version))
    assert peer.knows_end_of_topic is knows


def test_a_client_may_leave_out_partitions() -> None:
    connect = CommandConnect(client_version="c", protocol_version=20)
    assert not peer_of(connect).leaves_out_partitions
    connect.feature_flags.supports_partial_producer = True
    assert peer_of(connect).leaves_out_partitions


@pytest.mark.parametrize(
    ("version", "flag", "reads"), [(18, True, True), (17, True, False), (20, False, False)]
)
def test_broker_entry_metadata_needs_version_and_flag(
    version: int, flag: bool, reads: bool
) -> None:
    connect = CommandConnect(client_version="c", protocol_version=version)
    connect.feature_flags.supports_broker_entry_metadata = flag
    assert peer_of(connect).reads_broker_entry_metadata is reads


@pytest.mark.parametrize(
    ("version", "flag", "refreshes"), [(14, True, True), (13, True, False), (20, False, False)]
)
def test_new_credentials_need_version_and_flag(version: int, flag: bool, refreshes: bool) -> None:
    connect = CommandConnect(client_version="c", protocol_version=version)
    connect.feature_flags.supports_auth_refresh = flag
    assert peer_of(connect).refreshes_credentials is refreshes
