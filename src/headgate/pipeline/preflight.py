"""Checks of the brokers before Spark starts, so that a wrong URL or token fails at once."""

from __future__ import annotations

from typing import Final

import urllib3

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors
from headgate.pipeline.cluster_identity import UnknownClusterError, cluster_identity, is_headgate
from headgate.pipeline.options import SourceOptions
from pyspark_pulsar.access import NO_CREDENTIALS_ADVICE, tls_refusal
from pyspark_pulsar.admin import AdminClient, Response, cause_of, http_transport
from pyspark_pulsar.errors import AccessError, AdminError, OptionsError, TopicNotFoundError
from pyspark_pulsar.handshake import probe
from pyspark_pulsar.options import Connection, parse_options

TIMEOUT_S: Final = 5
"""Time limit of a broker's response."""

_ACCESS_HINT: Final = (
    "(--config, --profile or --auth-plugin and --auth-params give the credentials, "
    "--tls-trust-cert-path the authority to trust)"
)

_COMMAND_LINE_WORDS: Final = (
    (NO_CREDENTIALS_ADVICE, "credentials are needed"),
    ("tlsTrustCertsFilePath", "--tls-trust-cert-path"),
    ("tlsAllowInsecureConnection", "--tls-allow-insecure"),
    ("authPluginClassName", "--auth-plugin"),
    ("the token in authParams", "the token"),
    (" (authParams)", ""),
    (" of authParams", ""),
    ("authParams", "--auth-params"),
)
"""Names in the errors of ``format("pulsar")``, and the command line's words for them."""


def check_brokers(source: SourceOptions) -> None:
    """Check that every broker answers at both of its addresses and has the telemetry topic.

    Raises:
        InputError: one does not; the text has a line for each, and says how to go on.
    """
    faults = InputErrors()
    for broker_url, web_url in zip(source.broker_urls, source.web_urls, strict=True):
        with faults.collecting():
            connection = _connection(source, broker_url, web_url)
            _check_web(connection, web_url, source.topic)
            _check_binary(connection)
    faults.raise_any()


def _connection(source: SourceOptions, broker_url: str, web_url: str) -> Connection:
    """The connection options of the job, with a shorter timeout."""
    timeouts_ms = {"adminTimeoutMs": TIMEOUT_S * 1_000, "operationTimeoutMs": TIMEOUT_S * 1_000}
    options = source.source_options(broker_url, web_url)
    try:
        parsed = parse_options(options | {name: str(ms) for name, ms in timeouts_ms.items()})
        parsed.connection.access.check_files()
    except (OptionsError, AccessError) as error:
        raise InputError(_about_access(error)) from error
    return parsed.connection


def _about_access(error: Exception) -> str:
    text = str(error)
    for option, typed in _COMMAND_LINE_WORDS:
        text = text.replace(option, typed)
    return f"{text} {_ACCESS_HINT}"


def _check_web(connection: Connection, web_url: str, topic: str) -> None:
    transport = http_transport(connection.access)

    def once(url: str, timeout_s: float) -> Response:
        try:
            return transport(url, timeout_s)
        except urllib3.exceptions.HTTPError as error:
            if tls_refusal(error) is not None:
                raise  # the admin client says why
            why = connection.access.scrubbed(cause_of(error))
            raise InputError(
                f"{web_url} cannot be reached: {why} (--admin-url names the admin API of a broker "
                "that runs)"
            ) from error

    admin = AdminClient(connection, once)
    try:
        admin.partitions_of([topic])
        cluster_identity(admin)
    except TopicNotFoundError as error:
        if not is_headgate(admin):
            why = "it is no Headgate broker (Apache Pulsar?), and only Headgate publishes telemetry"
        else:
            why = (
                "a broker creates it with its first telemetry, one headgateTelemetryIntervalMs "
                "after its start"
            )
        raise InputError(
            f"{web_url} has no topic {topic}: {why} (--topic names another topic)"
        ) from error
    except AccessError as error:
        raise InputError(_about_access(error)) from error
    except UnknownClusterError as error:
        raise InputError(f"{web_url}: {error}") from error
    except AdminError as error:
        raise InputError(f"{error} (--admin-url names the admin API of a broker)") from error


def _check_binary(connection: Connection) -> None:
    """Connect as the job will, up to the broker's first answer. Where there are several hosts, the
    client finds one that answers."""
    broker_url = connection.service_url
    hint = "(--broker-url names the binary port of the broker of the same --admin-url)"
    if "," in broker_url:
        return
    try:
        probe(connection, TIMEOUT_S)
    except AccessError as error:
        raise InputError(_about_access(error)) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{broker_url} cannot be reached: {why} {hint}") from error
    except (EOFError, ValueError) as error:
        raise InputError(f"{broker_url} does not answer as a broker does {hint}") from error
