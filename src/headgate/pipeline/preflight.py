"""Ask the brokers before Spark is started: what is wrong is said at once, in one sentence."""

from __future__ import annotations

import socket
from contextlib import closing
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import urllib3

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions
from pyspark_pulsar.access import tls_refusal
from pyspark_pulsar.admin import AdminClient, Answer, cause_of, http_transport
from pyspark_pulsar.errors import AccessError, AdminError, OptionsError, TopicNotFoundError
from pyspark_pulsar.options import Connection, parse_options

TIMEOUT_S: Final = 5
"""How long a broker may take for an answer."""

_ACCESS_HINT: Final = (
    "(--token-file or HEADGATE_TOKEN gives the token, --tls-trust-certs the authority to trust)"
)

_OWN_PATH: Final = "/admin/v2/headgate/explain?count=1"
"""What only Headgate answers, in a moment."""

_BINARY_PORT: Final = 6_650
_TLS_PORT: Final = 6_651

_CONNECT: Final = b"\x0a\x08headgate\x20\x13"
_COMMAND: Final = b"\x08\x02\x12" + bytes([len(_CONNECT)]) + _CONNECT
_GREETING: Final = (
    (len(_COMMAND) + 4).to_bytes(4, "big") + len(_COMMAND).to_bytes(4, "big") + _COMMAND
)
"""CONNECT with client_version and protocol_version: sizes, type, and the two fields."""

_REPLY_BYTES: Final = 9
"""So much of the answer tells a broker from anything else: two sizes and a field's tag."""


def check_brokers(source: SourceOptions) -> None:
    """See that every broker answers at both of its addresses and has the telemetry topic.

    Raises:
        InputError: one does not; the text says how to go on.
    """
    for broker_url, web_url in zip(source.broker_urls, source.web_urls, strict=True):
        connection = _connection(source, broker_url, web_url)
        _check_web(connection, web_url, source.topic)
        _check_binary(connection)


def _connection(source: SourceOptions, broker_url: str, web_url: str) -> Connection:
    """As the job will connect, with a shorter patience."""
    patience = {"adminTimeoutMs": TIMEOUT_S * 1_000, "operationTimeoutMs": TIMEOUT_S * 1_000}
    options = source.source_options(broker_url, web_url)
    try:
        parsed = parse_options(options | {name: str(ms) for name, ms in patience.items()})
        parsed.connection.access.check_files()
    except (OptionsError, AccessError) as error:
        raise InputError(f"{error} {_ACCESS_HINT}") from error
    return parsed.connection


def _check_web(connection: Connection, web_url: str, topic: str) -> None:
    transport = http_transport(connection.access)

    def once(url: str, timeout_s: float) -> Answer:
        try:
            return transport(url, timeout_s)
        except urllib3.exceptions.HTTPError as error:
            if tls_refusal(error) is not None:
                raise  # the admin client says why
            raise InputError(
                f"{web_url} cannot be reached: {cause_of(error)} (--web-url names the admin API "
                "of a broker that runs)"
            ) from error

    try:
        AdminClient(connection, once).partitions_of([topic])
    except TopicNotFoundError as error:
        if once(f"{web_url.rstrip('/')}{_OWN_PATH}", TIMEOUT_S).status == HTTPStatus.NOT_FOUND:
            why = "it is no Headgate broker (Apache Pulsar?), and only Headgate publishes telemetry"
        else:
            why = (
                "a broker makes it with its first telemetry, one headgateTelemetryIntervalMs after "
                "its start"
            )
        raise InputError(
            f"{web_url} has no topic {topic}: {why} (--topic names another topic)"
        ) from error
    except AccessError as error:
        raise InputError(f"{error} {_ACCESS_HINT}") from error
    except AdminError as error:
        raise InputError(f"{error} (--web-url names the admin API of a broker)") from error


def _check_binary(connection: Connection) -> None:
    """Connect and say the protocol's first words. One host only; in TLS if the URL says so."""
    broker_url = connection.service_url
    where = urlsplit(broker_url)
    hint = "(--broker-url names the binary port of the broker of the same --web-url)"
    if "," in where.netloc:
        return
    is_tls = where.scheme == "pulsar+ssl"
    address = (where.hostname or "", where.port or (_TLS_PORT if is_tls else _BINARY_PORT))
    reply = b""
    try:
        with closing(_connected(connection, address, is_tls=is_tls)) as peer:
            peer.sendall(_GREETING)
            while len(reply) < _REPLY_BYTES and (piece := peer.recv(_REPLY_BYTES)):
                reply += piece
    except OSError as error:
        why = tls_refusal(error) or error.strerror or str(error)
        raise InputError(f"{broker_url} cannot be reached: {why} {hint}") from error
    if not _is_frame(reply):
        raise InputError(f"{broker_url} does not answer as a broker does {hint}")


def _connected(connection: Connection, address: tuple[str, int], *, is_tls: bool) -> socket.socket:
    """A connection to the binary port, in TLS or not. Raises :class:`OSError`."""
    plain = socket.create_connection(address, TIMEOUT_S)
    if not is_tls:
        return plain
    try:
        return connection.access.ssl_context().wrap_socket(plain, server_hostname=address[0])
    except BaseException:
        plain.close()
        raise


def _is_frame(reply: bytes) -> bool:
    """Whether bytes begin a frame with a command and nothing behind it, as any answer is."""
    total, command = int.from_bytes(reply[:4], "big"), int.from_bytes(reply[4:8], "big")
    return total == command + 4 and reply[8:9] == b"\x08"
