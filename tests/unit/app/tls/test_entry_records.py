"""A connection's first record and what comes right behind it."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import uvloop

from tests.trial_certificates import Trial
from tests.unit.app.tls.test_entry import Whole


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
