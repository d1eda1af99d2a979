"""Publishing and start over TLS, beside the same without, in turns ABBA.

The client encrypts too, on another core; so the share of the rate is a lower bound where the client
is busier than the server. The CPU of the server has no such doubt.
"""

from __future__ import annotations

import argparse
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.client import Publisher, entry, publish
from bench.report import Table, median, number
from bench.servers import Server, headgate, scratch
from headgate.security.certificate_making import Authority, new_ec_key, new_serial_number

RATE_SHARE_MIN: Final = 0.6
START_MORE_S_MAX: Final = 0.1
TOPIC: Final = "persistent://public/default/bench-tls-{}"
TURNS: Final = ("plain", "tls", "tls", "plain")
HANDSHAKES: Final = 50


class SecurePublisher(Publisher):
    """A producer over TLS."""

    def __init__(self, port: int, topic: str, body: bytes, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(port, topic, body)

    def connect(self, port: int) -> None:
        """Connect with a handshake."""
        super().connect(port)
        self.socket = self._context.wrap_socket(self.socket, server_hostname="localhost")

    def receive(self) -> int:
        """Take also what is decrypted already: the poll does not see it."""
        count = super().receive()
        assert isinstance(self.socket, ssl.SSLSocket)
        while self.socket.pending():
            count += super().receive()
        return count


@dataclass
class Runs:
    """What one side took."""

    rate: list[float] = field(default_factory=list)
    """Entries a second."""
    cpu_us: list[float] = field(default_factory=list)
    """Of the server, for an entry."""
    start_s: list[float] = field(default_factory=list)
    """Without the time in line for a CPU."""


def certificates(folder: Path) -> list[str]:
    """Make an authority and a server's certificate; returns the broker's settings."""
    now = datetime.now(UTC)
    authority = Authority.new(now, new_ec_key, new_serial_number)
    server = authority.server(["localhost"], now, 1, new_ec_key, new_serial_number)
    made = {
        "ca": authority.made.certificate, "server": server.certificate, "key": server.key,
    }  # fmt: skip
    for name, data in made.items():
        path = folder / f"{name}.pem"
        path.write_bytes(data)
        path.chmod(0o600)
    return [
        "brokerServicePortTls=0",
        "webServicePortTls=0",
        f"tlsCertificateFilePath={folder}/server.pem",
        f"tlsKeyFilePath={folder}/key.pem",
    ]


def port_of_tls(server: Server) -> int:
    """That of the binary protocol."""
    (url,) = (word for word in server.ready_line.split() if word.startswith("pulsar+ssl://"))
    return urlsplit(url).port or 0


def publish_round(server: Server, context: ssl.SSLContext | None, runs: Runs, count: int) -> None:
    """Publish ``count`` entries of 1 KiB with one producer."""
    topic = TOPIC.format("plain" if context is None else "tls")
    publisher = (
        Publisher(server.port, topic, entry())
        if context is None
        else SecurePublisher(port_of_tls(server), topic, entry(), context)
    )
    publish([publisher], 500)
    before_ns = server.cpu_ns()
    runs.rate.append(count / publish([publisher], count))
    runs.cpu_us.append((server.cpu_ns() - before_ns) / count / 1_000)
    publisher.close()


def handshake_ms(server: Server, context: ssl.SSLContext) -> float:
    """CPU of the server for a connection with its handshake and CONNECT, less one without TLS."""
    port, cpu_ms = port_of_tls(server), []
    for secure in (False, True):
        before_ns = server.cpu_ns()
        for _ in range(HANDSHAKES):
            if secure:
                SecurePublisher(port, TOPIC.format("handshake"), b"", context).close()
            else:
                Publisher(server.port, TOPIC.format("handshake"), b"").close()
        cpu_ms.append((server.cpu_ns() - before_ns) / HANDSHAKES / 1e6)
    return cpu_ms[1] - cpu_ms[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    options = parser.parse_args()
    count, rounds = (5_000, 2) if options.quick else (20_000, 6)
    sides = {"plain": Runs(), "tls": Runs()}
    with scratch() as folder:
        settings = certificates(folder)
        context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        contexts = {"plain": None, "tls": context}
        server = headgate(folder, settings)
        try:
            for _ in range(rounds):
                for side in TURNS:
                    publish_round(server, contexts[side], sides[side], count)
            handshake = handshake_ms(server, context)
        finally:
            server.close()
        for number_of_run in range(rounds):
            for side in TURNS:
                name = f"start-{number_of_run}-{side}-{len(sides[side].start_s)}"
                begun = headgate(folder, settings if side == "tls" else (), name=name)
                quiet_s = begun.ready_s - begun.waited_for_cpu_ns() / 1e9
                sides[side].start_s.append(quiet_s)
                begun.close()
    report(sides, handshake)


def report(sides: dict[str, Runs], handshake: float) -> None:
    """Print the table."""
    plain, secure = sides["plain"], sides["tls"]
    table = Table("TLS beside plain: one producer of 1 KiB, medians of rounds in turns ABBA")
    for name, runs in (("plain", plain), ("TLS", secure)):
        text = f"{number(median(runs.rate))} entries/s  {number(median(runs.cpu_us))} us CPU"
        table.add(f"publish, {name}", text)
    shares = [ours / theirs for ours, theirs in zip(secure.rate, plain.rate, strict=True)]
    table.check_least("publish over TLS", median(shares), "of plain", RATE_SHARE_MIN)
    table.add("CPU of a handshake", f"{number(handshake)} ms")
    more_s = median(secure.start_s) - median(plain.start_s)
    table.add("start, plain", f"{number(median(plain.start_s))} s")
    table.check("start with TLS", more_s, "s more", START_MORE_S_MAX)
    table.print()


if __name__ == "__main__":
    main()
