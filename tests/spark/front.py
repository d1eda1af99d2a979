"""A proxy before a broker that requires tokens, speaks TLS, and can hang.

It stands before both ports of one broker, as a load balancer or Pulsar's proxy does: requests
without the right token get 401, and a CONNECT without it gets AuthenticationError, as Pulsar
answers. Lookups are rewritten, so that clients stay with the front.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import urllib3

from headgate.wire import replies
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand

TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Certificates:
    """Files of an authority and of what it signed: a server at 127.0.0.1, and a client."""

    authority: str
    server: str
    server_key: str
    client: str
    client_key: str


def make_certificates(folder: Path) -> Certificates:
    """Make an authority and let it sign, with the ``openssl`` command."""

    def run(*words: str) -> None:
        subprocess.run(
            ["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=TIMEOUT_S
        )

    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=test authority", "-addext", "basicConstraints=critical,CA:TRUE",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
    for name in ("server", "client"):
        (folder / f"{name}.ext").write_text(
            "subjectAltName=IP:127.0.0.1\n"
            "basicConstraints=critical,CA:FALSE\n"
            "subjectKeyIdentifier=hash\n"
            "authorityKeyIdentifier=keyid\n"
            f"extendedKeyUsage={name}Auth\n"
        )
        request, key = f"{name}.csr", f"{name}.key"
        run("req", *new_key, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        run("x509", "-req", "-in", request, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext")  # fmt: skip
    files = ("ca.pem", "server.pem", "server.key", "client.pem", "client.key")
    return Certificates(*(str(folder / name) for name in files))


class Front:
    """Forwards to a broker until it is closed."""

    def __init__(
        self,
        service_url: str,
        admin_url: str,
        *,
        tokens: set[str] | None = None,
        certificates: Certificates | None = None,
        wants_certificate: bool = False,
    ) -> None:
        """``tokens`` are accepted, None: no token is asked for; with ``certificates`` in TLS."""
        where = urlsplit(service_url)
        self._broker = (where.hostname or "", where.port or 0)
        self._admin_url = admin_url
        self.tokens = tokens
        self.shown: list[str] = []
        """Tokens as they came in CONNECT frames."""
        self.requests = 0
        """HTTP requests so far."""
        self._context = None
        if certificates is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificates.server, certificates.server_key)
            if wants_certificate:
                self._context.verify_mode = ssl.CERT_REQUIRED
                self._context.load_verify_locations(certificates.authority)
        self._goes_on = threading.Event()
        self._goes_on.set()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._web = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._web.daemon_threads = True
        if self._context is not None:
            self._web.socket = self._context.wrap_socket(
                self._web.socket, server_side=True, do_handshake_on_connect=False
            )
        tls = self._context is not None
        self.service_url = (
            f"pulsar{'+ssl' if tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}"
        )
        self.admin_url = f"http{'s' if tls else ''}://127.0.0.1:{self._web.server_port}"
        for work in (self._accept, self._web.serve_forever):
            threading.Thread(target=work, daemon=True).start()

    def hang(self) -> None:
        """From now on accept connections and bytes, and answer nothing."""
        self._goes_on.clear()

    def go_on(self) -> None:
        """Answer again, also what came in between."""
        self._goes_on.set()

    def close(self) -> None:
        """End it, with all connections."""
        self._goes_on.set()
        self._web.shutdown()
        self._web.server_close()
        # A thread that is in accept() is woken by this and not by close().
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        """One connection of the binary protocol."""
        with suppress(OSError), closing(plain):
            peer = plain
            if self._context is not None:
                peer = self._context.wrap_socket(plain, server_side=True)
            self._open.append(peer)
            with (
                closing(peer),
                closing(socket.create_connection(self._broker, TIMEOUT_S)) as broker,
            ):
                self._open.append(broker)
                broker.settimeout(None)
                first = _frame(peer)
                command = BaseCommand.FromString(first[8:])
                token = command.connect.auth_data.decode()
                self.shown.append(token)
                if self.tokens is not None and token not in self.tokens:
                    peer.sendall(
                        replies.error(0, ServerError.AUTHENTICATION_ERROR, "not this token")
                    )
                    return
                broker.sendall(first)
                back = threading.Thread(target=self._back, args=(broker, peer), daemon=True)
                back.start()
                while data := peer.recv(65_536):
                    self._goes_on.wait()
                    broker.sendall(data)

    def _back(self, broker: socket.socket, peer: socket.socket) -> None:
        """The broker's frames, lookups rewritten."""
        with suppress(OSError, EOFError):
            while True:
                frame = _frame(broker)
                self._goes_on.wait()
                if frame[8:10] == bytes((8, CommandType.LOOKUP_RESPONSE)):
                    size = int.from_bytes(frame[4:8], "big")
                    command = BaseCommand.FromString(frame[8 : 8 + size])
                    command.lookupTopicResponse.brokerServiceUrl = self.service_url
                    command.lookupTopicResponse.brokerServiceUrlTls = self.service_url
                    frame = encode_frame(command)
                peer.sendall(frame)
        with suppress(OSError):
            peer.shutdown(socket.SHUT_RDWR)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        front, pool = self, urllib3.PoolManager(maxsize=32, timeout=TIMEOUT_S, retries=False)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                front.requests += 1
                front._goes_on.wait()
                status, body, headers = 401, b'{"reason": "a token is required"}', {}
                words = self.headers.get("Authorization", "").split()
                if front.tokens is None or (words[:1] == ["Bearer"] and words[1] in front.tokens):
                    try:
                        answer = pool.request("GET", front._admin_url + self.path, redirect=False)
                        status, body = answer.status, answer.data
                        headers = {k: v for k, v in answer.headers.items() if k.startswith("X-")}
                    except urllib3.exceptions.HTTPError:
                        status, body = 503, b'{"reason": "the broker is gone"}'
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle(self) -> None:
                try:
                    super().handle()
                except ssl.SSLError:
                    _drain(self.connection)
                except OSError:
                    pass

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def _drain(peer: socket.socket) -> None:
    """End a connection whose TLS failed so that the alert is read, and not lost by a reset."""
    with suppress(OSError), socket.socket(fileno=os.dup(peer.fileno())) as plain:
        plain.settimeout(TIMEOUT_S)
        plain.shutdown(socket.SHUT_WR)
        while plain.recv(65_536):
            pass


def _frame(peer: socket.socket) -> bytes:
    """One frame, whole. Raises :class:`EOFError` at the connection's end."""
    head = _exactly(peer, 4)
    return head + _exactly(peer, int.from_bytes(head, "big"))


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = peer.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


@contextmanager
def front_of(service_url: str, admin_url: str, **more: object) -> Iterator[Front]:
    """A front for as long as the block runs."""
    front = Front(service_url, admin_url, **more)  # type: ignore[arg-type]
    try:
        yield front
    finally:
        front.close()
