"""Connections are counted in all and by host."""

from __future__ import annotations

import pytest

from headgate.broker.connection.address_counts import (
    PER_ADDRESS_MAX,
    TOTAL_MAX,
    AddressCounts,
    CountBounds,
    address_of,
    peer_network_of,
    region_of,
    unauthenticated_bounds,
    wide_network_of,
)


@pytest.mark.parametrize(
    ("descriptors", "bounds"),
    [
        (None, (TOTAL_MAX, PER_ADDRESS_MAX)),
        (1 << 20, (TOTAL_MAX, PER_ADDRESS_MAX)),
        (1_000, (750, 500)),
        (1, (1, 1)),
    ],
)
def test_bounds_are_a_share_of_the_descriptors(
    descriptors: int | None, bounds: tuple[int, int]
) -> None:
    assert unauthenticated_bounds(descriptors) == bounds


def test_each_bound_is_named() -> None:
    counts, bounds = AddressCounts(), CountBounds(3, 2)
    for address in ("/a:1", "/a:2"):
        assert counts.exceeded(address, bounds) == ""
        counts.add(address)
    assert counts.exceeded("/a:3", bounds) == "2 from one address"
    assert counts.exceeded("", bounds) == ""
    counts.add("/::1:5")
    assert counts.exceeded("/c:3", bounds) == "3 in all"
    counts.remove("/a:1")
    assert (counts.total, counts.of("/a:9"), counts.of("/::1:9")) == (2, 1, 1)
    assert counts.exceeded("/a:3", bounds) == ""


@pytest.mark.parametrize("leaves_room", [False, True])
def test_peers_that_left_before_their_address_was_read_count_as_one(leaves_room: bool) -> None:
    """Their number had no bound of its own: one client that did so took the places of all."""
    counts, bounds = AddressCounts(leaves_room=leaves_room), CountBounds(4, 2)
    for _ in range(2):
        assert counts.exceeded(address_of(None), bounds) == ""
        counts.add(address_of(None))
    assert counts.exceeded(address_of(None), bounds) == "2 from one address"
    assert counts.exceeded("/a:1", bounds) == ""
    counts.remove(address_of(None))
    assert counts.exceeded(address_of(None), bounds) == ""


def test_addresses_of_peers() -> None:
    assert address_of(("10.0.0.1", 5)) == "/10.0.0.1:5"
    assert address_of(("::1", 5, 0, 0)) == "/::1:5"
    assert address_of(None) == address_of("") == ""


def test_the_first_64_bits_of_an_ipv6_address_may_count_as_one() -> None:
    counts = AddressCounts(by_network=True)
    counts.add("/2001:db8::1:5000")
    counts.add("/2001:db8::2:5001")
    assert counts.of("/2001:db8::3:1") == 2
    assert counts.of("/2001:db8:0:1::1:1") == 0
    counts.remove("/2001:db8::2:5001")
    assert counts.of("/2001:db8::1:1") == 1


def test_a_wide_network_has_the_networks_of_one_owner() -> None:
    for one, other, third in (
        ("/2001:db8:7:1::1:5000", "/2001:db8:7:ffff::9:1", "/2001:db8:8:1::1:1"),
        ("/192.0.2.1:5000", "/::ffff:192.0.2.255:1", "/192.0.3.1:1"),
        ("/a:1", "/a:2", ""),
    ):
        wide = wide_network_of(peer_network_of(one))
        assert wide == wide_network_of(peer_network_of(other))
        assert wide != wide_network_of(peer_network_of(third))
    assert wide_network_of("2001:db8:7:1::/64") == "2001:db8:7::/48"
    assert region_of("2001:db8:7:1::/64") == region_of("2001:db8:7::/48") == "2001:db8::/32"
    assert region_of("192.0.2.1") == region_of("192.0.2.0/24") == "192.0.0.0/16"


def test_few_addresses_do_not_take_all_that_others_could_have() -> None:
    """Two did: they had half each, and a probe of the broker's readiness found nothing free."""
    bounds = CountBounds(64, 32)
    counts, taken = AddressCounts(leaves_room=True), []
    for number in range(4):
        address = f"/10.0.0.{number}:1"
        while not counts.exceeded(address, bounds):
            counts.add(address)
        taken.append(counts.of(address))
    assert taken == [32, 16, 8, 4]
    assert counts.exceeded("/10.0.0.1:1", bounds) == (
        "64 in all, and from one address as many as are free for others"
    )
    assert counts.exceeded("/10.0.0.9:1", bounds) == ""


def test_the_networks_of_one_48_do_not_take_all_that_others_could_have() -> None:
    """Fourteen of one machine refused every second new connection to a web port."""
    counts, bounds = AddressCounts(by_network=True, leaves_room=True), CountBounds(1_000, 500)
    for number in range(100):
        address = f"/2001:db8:1:{number:x}::1:5000"
        while not counts.exceeded(address, bounds):
            counts.add(address)
    assert counts.total == 750
    assert not counts.exceeded("/2001:db8:2:1::1:5000", bounds)
    assert not counts.exceeded("/10.0.0.1:5000", bounds)
    counts.remove("/2001:db8:1:0::1:5000")
    assert not counts.exceeded("/2001:db8:1:ff::1:5000", bounds)
