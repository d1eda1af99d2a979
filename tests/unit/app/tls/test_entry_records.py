"""A connection's first record, what comes right behind it, and what is left unread."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from headgate.app.tls.record_reading import READ_BYTES
from headgate.app.tls.transport import UNREAD_BYTES_MAX, TlsTransport
from tests.trial_certificates import Trial
from tests.unit.app.tls.test_entry import LOOPS, Whole


@pytest.mark.parametrize("cut", [0, 3, 5, 50, 300])
def test_a_hello_in_two_records_whose_second_comes_in_parts(tmp_path: Path, cut: int) -> None:
    """With 5 or 300 bytes of it the handshake never ended: the next record was looked for amid
    this one."""
    trial = Trial(tmp_path)

    async def story() -> None:
        whole = Whole(trial)
        sock = await whole.dial()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trial.context("admin").wrap_bio(incoming, outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        hello = outgoing.read()[5:]
        first, second = (
            b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in (hello[:100], hello[100:])
        )
        await whole.loop.sock_sendall(sock, first + second[:cut])
        entry = next(iter(whole.port.half_open))
        await whole.until(lambda: entry._reads is not None)
        await whole.loop.sock_sendall(sock, second[cut:])
        async with asyncio.timeout(10):
            while True:
                incoming.write(await whole.loop.sock_recv(sock, 65_536))
                try:
                    client.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                finally:
                    await whole.loop.sock_sendall(sock, outgoing.read())
                break
        await whole.until(lambda: bool(whole.notes))
        sock.close()
        await whole.until(lambda: len(whole.notes) == 2)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


class Sipping(asyncio.BufferedProtocol):
    """Takes a little at a time, and pauses behind each."""

    def __init__(self) -> None:
        self.taken_bytes = self.kept_most = 0
        self._room = bytearray(1_024)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, TlsTransport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self.taken_bytes += nbytes
        kept_bytes = self._transport._inner.get_read_buffer_size()  # type: ignore[attr-defined]
        self.kept_most = max(self.kept_most, kept_bytes)
        self._transport.pause_reading()
        asyncio.get_running_loop().call_later(0.0001, self._transport.resume_reading)


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
def test_who_pauses_and_resumes_all_the_time_has_little_unread(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Each time the socket was read again, TLS kept all of it, and nobody is charged with that."""
    trial, protocol, sent = Trial(tmp_path), Sipping(), bytes(1 << 20)

    async def story() -> None:
        whole = Whole(trial)
        whole.make = lambda: protocol
        _, writer = await asyncio.open_connection(
            sock=await whole.dial(), ssl=trial.context("admin"), server_hostname="localhost"
        )
        writer.write(sent)
        await whole.until(lambda: protocol.taken_bytes == len(sent))
        writer.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())
    assert protocol.kept_most <= UNREAD_BYTES_MAX + READ_BYTES
