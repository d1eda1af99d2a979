"""Entries that end while they wait for their turn."""

from __future__ import annotations

import asyncio
import weakref

from headgate.app.tls.entry import HandshakePace
from headgate.app.tls.handshake_steps import LOST_MIN
from headgate.broker.connection.bounds import HANDSHAKE_TIMEOUT_S
from headgate.broker.tls_status import HandshakeEnd
from tests.unit.app.tls.test_entry import Port, Socket, feed, port
from tests.unit.app.tls.test_hello import client_hello

__all__ = ["port"]  # a fixture


def test_who_ends_before_its_turn_does_not_stay_in_the_line(port: Port) -> None:
    """Each kept a buffer of up to 16 KiB, until those of other networks had had as many turns."""
    pace = HandshakePace(port.loop)
    pace._is_due = True  # so no turn comes
    port.port.pace = pace
    refs = []
    for _ in range(3 * LOST_MIN):
        entry, _ = port.connect()
        feed(entry, client_hello())
        refs.append(weakref.ref(entry))
    del entry
    port.run(HANDSHAKE_TIMEOUT_S - 0.1)
    last, _ = port.connect()
    feed(last, client_hello())
    assert len(pace._waiting) == len(refs) + 1
    port.run(0.2)
    assert port.status.half_open == 1
    assert sum(ref() is not None for ref in refs) <= LOST_MIN
    last.connection_lost(None)
    assert port.status.half_open == 0


def test_who_ends_amid_its_handshake_is_not_counted_as_one_who_waits(port: Port) -> None:
    pace = HandshakePace(port.loop)
    port.port.pace = pace
    waiting, wire = port.connect()
    feed(waiting, client_hello())
    wire.close()
    pace._turn()
    waiting.connection_lost(None)
    assert pace._ended._count == 0
    assert port.status.half_open == 0


def test_who_has_left_before_it_is_accepted_takes_no_place(port: Port) -> None:
    """Its first bytes came before its end, so it had a place until its turn, and no network that
    the place counted for: 700 in a second from one address kept all others out."""
    entry, wire = port.port.entry(asyncio.Protocol), Socket(None)
    entry.connection_made(wire)
    assert wire.ended == "aborted"
    entry.connection_lost(None)
    assert (port.gate.open, port.status.half_open, port.pace.waiting) == ([], 0, [])
    assert port.status.handshakes == {HandshakeEnd.FAILED: 1}
    port.run(HANDSHAKE_TIMEOUT_S + 1)
    assert port.status.handshakes == {HandshakeEnd.FAILED: 1}
