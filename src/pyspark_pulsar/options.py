"""The options of the source.

Spark passes options as strings. An unknown option is an error, because a misspelt option that is
ignored costs an afternoon. An option without effect on the kind of query is an error, too. One
exception lists all problems.

No Spark, and no I/O but the environment variable that ``authParams`` may name.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pyspark_pulsar.access import ACCESS_OPTIONS, NO_ACCESS, TLS_OPTIONS, Access, credentials
from pyspark_pulsar.errors import OffsetError, OptionsError
from pyspark_pulsar.offsets import parse_position

EARLIEST = "earliest"
LATEST = "latest"

COLUMNS = (
    "value",
    "__key",
    "__topic",
    "__messageId",
    "__publishTime",
    "__eventTime",
    "__messageProperties",
)
"""The columns of the source, in order."""


MESSAGE_BYTES_MAX = 268_435_456
"""256 MiB: fifty times the largest entry that a broker takes by default."""

PUBLISH_TIME_SKEW_MS = 600_000
"""Two clocks may each be off by five minutes, Kerberos' tolerance, in opposite directions."""


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """The description of one option."""

    name: str
    default: str
    """In words if it is no plain value; ``required`` without one."""
    allowed: str
    meaning: str
    queries: str = "batch, stream"
    """The kinds of query to which it applies."""


_MESSAGE_IDS = "JSON of message ids by topic, `L:E`, `L:E:P` or `L:E:P:B`"

OPTIONS = (
    OptionInfo("service.url", "required", "`pulsar://HOST:PORT`, `pulsar+ssl://...`",
               "The brokers' binary port, from which tasks read messages."),
    OptionInfo("admin.url", "required", "`http://HOST:PORT`, `https://...`",
               "The admin API, for partitions, ends of topics, ledgers and searches by time."),
    OptionInfo("authPluginClassName", "none",
               "`token`, `basic`, `tls`, `oauth2`, or Pulsar's class of one, such as "
               "`org.apache.pulsar.client.impl.auth.AuthenticationToken`",
               "The kind of credentials in `authParams`, for both URLs. This option and the six "
               "below also work with the prefixes `pulsar.client.` and `pulsar.admin.`."),
    OptionInfo("authParams", "none",
               "`file:///PATH`, `env:NAME`, `token:TOKEN`, `USER:PASSWORD`; "
               "`tlsCertFile:PATH,tlsKeyFile:PATH`; `{\"issuerUrl\": \"https://HOST\", "
               "\"privateKey\": \"file:///PATH\"}`",
               "The token, or user and password: in a file on every worker, which is read again "
               "for each connection and request, in an environment variable of the driver, or as "
               "they are. Or the client's certificate and key. Or the issuer of OAuth 2.0 tokens, "
               "with the file of the client's key on every worker, and perhaps `audience` and "
               "`scope`."),
    OptionInfo("tlsTrustCertsFilePath", "public authorities", "a path",
               "PEM file of the certificate authorities to trust, on every worker."),
    OptionInfo("tlsCertificateFilePath", "none", "a path",
               "PEM file of the client's certificate, on every worker, if TLS asks for it beside "
               "other credentials."),
    OptionInfo("tlsKeyFilePath", "none", "a path", "PEM file of that certificate's key."),
    OptionInfo("tlsAllowInsecureConnection", "`false`", "`true`, `false`",
               "Trust any certificate; for tests only."),
    OptionInfo("tlsHostnameVerificationEnable", "`true`", "`true`, `false`",
               "Whether the certificate must match the host in the URL. The default of Java's "
               "clients is `false`."),
    OptionInfo("topic", "one of the two", "a name or `persistent://TENANT/NAMESPACE/NAME`",
               "The topic, with all its partitions, also those that are added later."),
    OptionInfo("topics", "one of the two", "names with commas between them",
               "Several topics in one DataFrame; `__topic` distinguishes them."),
    OptionInfo("startingOffsets", "`earliest` in a batch, `latest` in a stream",
               f"`earliest`, `latest`, {_MESSAGE_IDS}",
               "The first message to read. A stream with a checkpoint continues from the "
               "checkpoint instead. A stream that begins at the end of a topic has an empty first "
               "batch, which fixes its start."),
    OptionInfo("endingOffsets", "`latest`", f"`latest`, {_MESSAGE_IDS}",
               "The last message to read; planning fixes it.", "batch"),
    OptionInfo("startingTime", "none", "milliseconds since the epoch",
               "Read only messages published at this time or later. A stream with a checkpoint "
               "continues from the checkpoint, and skips messages published earlier."),
    OptionInfo("endingTime", "none", "milliseconds since the epoch",
               "Read only messages published before this time.", "batch"),
    OptionInfo("publishTimeSkewMs", f"`{PUBLISH_TIME_SKEW_MS}`", "0 to 9223372036854775 ms",
               "Largest difference between the clocks of producers and brokers, including the "
               "delay of a message. The search for both times [extends by this "
               "much](#publish-times)."),
    OptionInfo("failOnDataLoss", "`true`", "`true`, `false`",
               "Whether the query fails if messages were trimmed before it read them, or if a "
               "topic was recreated, or a message is encrypted or malformed. Otherwise the source "
               "logs a warning, and reads a recreated topic from its first message."),
    OptionInfo("minPartitions", "`1`", "1 to 100000",
               "Least number of tasks: the source splits large partitions between entries."),
    OptionInfo("maxRowsPerTrigger", "none", "a whole number from 1",
               "Most rows per trigger, divided over partitions by backlog; may be exceeded by less "
               "than one entry per partition.",
               "stream"),
    OptionInfo("maxBytesPerTrigger", "none", "a whole number from 1",
               "Most stored bytes per trigger, with the same tolerance; both limits may be set.",
               "stream"),
    OptionInfo("columns", "all", "names with commas between them",
               "Only these columns; the source does not decode the others."),
    OptionInfo("receiverQueueSize", "`1000`", "1 to 100000",
               "Most messages that the broker sends to a task ahead."),
    OptionInfo("maxMessageBytes", f"`{MESSAGE_BYTES_MAX}`", "1048576 to 2147483647",
               "Largest batch, or message in chunks, when it is unpacked. A larger one is "
               "[malformed](#malformed-messages). A task takes a few times as much memory."),
    OptionInfo("pollTimeoutMs", "`120000`", "100 to 86400000 ms",
               "How long a task waits for the next message, and a running stream for a cluster "
               "that does not answer, before the query fails."),
    OptionInfo("adminTimeoutMs", "`30000`", "100 to 86400000 ms",
               "Time-out of one request to the admin API, including retries."),
    OptionInfo("operationTimeoutMs", "`30000`", "1000 to 86400000 ms",
               "Time-out of an operation of the client, such as the creation of a reader."),
)  # fmt: skip
"""All options of the source. Spark ignores the case of option names."""

OPTION_NAMES = tuple(option.name for option in OPTIONS)
BATCH_ONLY = tuple(option.name for option in OPTIONS if option.queries == "batch")
STREAM_ONLY = tuple(option.name for option in OPTIONS if option.queries == "stream")

_TOPIC_PART = re.compile(r"[A-Za-z0-9_\-=:.]+")
_INT64_MAX = (1 << 63) - 1
_INT32_MAX = (1 << 31) - 1
_DAY_MS = 86_400_000
_T = TypeVar("_T")

StartOrEnd = str | Mapping[str, str]
"""``earliest``, ``latest``, or one of these or an ``L:E:P:B`` text per topic or partition."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The addresses and credentials of a cluster."""

    service_url: str
    admin_url: str
    operation_timeout_ms: int
    admin_timeout_ms: int
    access: Access = NO_ACCESS


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All options, checked and with defaults.

    ``starting_offsets`` and ``ending_offsets`` are None if the kind of query decides the
    default. ``starting_time_ms`` is inclusive and ``ending_time_ms`` exclusive, both publish time
    in epoch milliseconds. ``given`` has the options that the caller set, in their usual
    spelling.
    """

    connection: Connection
    topics: tuple[str, ...]
    starting_offsets: StartOrEnd | None
    ending_offsets: StartOrEnd | None
    starting_time_ms: int | None
    ending_time_ms: int | None
    publish_time_skew_ms: int
    fail_on_data_loss: bool
    partitions_min: int
    rows_per_trigger_max: int | None
    bytes_per_trigger_max: int | None
    columns: tuple[str, ...]
    receiver_queue_size: int | None
    message_bytes_max: int
    poll_timeout_ms: int
    given: frozenset[str]

    def check_batch(self) -> None:
        """Raise :class:`OptionsError` if an option for streams is set."""
        problems = [
            f"option {name} limits a stream's trigger and has no effect on a batch read"
            for name in STREAM_ONLY
            if name in self.given
        ]
        problems += self._skew_problems("startingTime", "endingTime")
        if self.starting_offsets == LATEST:
            problems.append("startingOffsets=latest would read nothing in a batch read")
        if self.ending_offsets == EARLIEST:
            problems.append("endingOffsets=earliest would read nothing in a batch read")
        if problems:
            raise OptionsError(problems)

    def check_stream(self) -> None:
        """Raise :class:`OptionsError` if an option for batch reads is set."""
        problems = [
            f"option {name} is for batch reads; a stream has no end"
            for name in BATCH_ONLY
            if name in self.given
        ]
        problems += self._skew_problems("startingTime")
        if problems:
            raise OptionsError(problems)

    def _skew_problems(self, *times: str) -> list[str]:
        """The problem of a clock skew without any of the options ``times``."""
        if "publishTimeSkewMs" not in self.given or self.given & set(times):
            return []
        return [f"publishTimeSkewMs has no effect without {' or '.join(times)}"]


class _OptionReader:
    """Reads options in any spelling and collects their problems."""

    def __init__(self, options: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.environment = environment
        usual_spelling = {name.lower(): name for name in OPTION_NAMES}
        self.values: dict[str, str] = {}
        self.problems: list[str] = []
        for key, value in options.items():
            name = usual_spelling.get(_without_prefix(key.lower()))
            if name in self.values:
                # Users of the JVM's connector set these for its client and for its admin client.
                if name in ACCESS_OPTIONS and self.values[name] == value:
                    continue
                self.problems.append(f"option {name} is given twice")
            elif name is None:
                near = difflib.get_close_matches(key.lower(), usual_spelling, n=1)
                hint = f"; did you mean {usual_spelling[near[0]]}?" if near else ""
                self.problems.append(f"unknown option {key}{hint}")
            else:
                self.values[name] = value

    def read(self, name: str, parse: Callable[[str], _T], default: _T) -> _T:
        """The parsed option; ``default`` if it is absent or invalid, which adds a problem."""
        text = self.values.get(name)
        if text is None:
            return default
        try:
            return parse(text.strip())
        except (ValueError, OffsetError) as error:
            shown = name if name in ACCESS_OPTIONS else f"{name}={_without_password(text)!r}"
            self.problems.append(f"option {shown}: {error}")
            return default

    def require(self, name: str, parse: Callable[[str], str]) -> str:
        """As :meth:`read`, but an absent option is a problem, too."""
        if name not in self.values:
            self.problems.append(f"option {name} is required")
        return self.read(name, parse, "")


def parse_options(
    options: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> SourceOptions:
    """The checked options of a query, with defaults.

    Raises :class:`OptionsError`, which lists every problem.
    """
    fields = _OptionReader(options, environment)
    connection = Connection(
        service_url=fields.require("service.url", _parse_service_url),
        admin_url=fields.require("admin.url", _parse_admin_url),
        operation_timeout_ms=fields.read("operationTimeoutMs", _integer(1_000, _DAY_MS), 30_000),
        admin_timeout_ms=fields.read("adminTimeoutMs", _integer(100, _DAY_MS), 30_000),
        access=_access(fields),
    )
    time_max = _INT64_MAX // 1_000
    parsed = SourceOptions(
        connection=connection,
        topics=_topics(fields),
        starting_offsets=fields.read("startingOffsets", _parse_start_or_end, None),
        ending_offsets=fields.read("endingOffsets", _parse_start_or_end, None),
        starting_time_ms=fields.read("startingTime", _integer(0, time_max), None),
        ending_time_ms=fields.read("endingTime", _integer(0, time_max), None),
        publish_time_skew_ms=fields.read(
            "publishTimeSkewMs", _integer(0, time_max), PUBLISH_TIME_SKEW_MS
        ),
        fail_on_data_loss=fields.read("failOnDataLoss", _parse_bool, True),
        partitions_min=fields.read("minPartitions", _integer(1, 100_000), 1),
        rows_per_trigger_max=fields.read("maxRowsPerTrigger", _integer(1, _INT64_MAX), None),
        bytes_per_trigger_max=fields.read("maxBytesPerTrigger", _integer(1, _INT64_MAX), None),
        columns=fields.read("columns", _parse_columns, COLUMNS),
        receiver_queue_size=fields.read("receiverQueueSize", _integer(1, 100_000), None),
        message_bytes_max=fields.read(
            "maxMessageBytes", _integer(1 << 20, _INT32_MAX), MESSAGE_BYTES_MAX
        ),
        poll_timeout_ms=fields.read("pollTimeoutMs", _integer(100, _DAY_MS), 120_000),
        given=frozenset(fields.values),
    )
    for offsets, time in (("startingOffsets", "startingTime"), ("endingOffsets", "endingTime")):
        if offsets in fields.values and time in fields.values:
            fields.problems.append(f"options {offsets} and {time} exclude each other")
    start_ms, end_ms = parsed.starting_time_ms, parsed.ending_time_ms
    if start_ms is not None and end_ms is not None and start_ms > end_ms:
        fields.problems.append(f"startingTime {start_ms} is after endingTime {end_ms}")
    if fields.problems:
        raise OptionsError(fields.problems)
    return parsed


def full_topic_name(name: str) -> str:
    """``persistent://tenant/ns/t`` for ``t``, ``tenant/ns/t`` or a full name.

    Raises :class:`ValueError` for any other text. Only persistent topics store messages.
    """
    text = name.strip()
    domain, separator, rest = text.partition("://")
    if not separator:
        domain, rest = "persistent", text
    if domain == "non-persistent":
        raise ValueError(f"{name!r} is not persistent: it stores no messages")
    parts = rest.split("/")
    if not separator and len(parts) == 1:
        parts = ["public", "default", *parts]
    if domain != "persistent" or len(parts) != 3:
        raise ValueError(f"{name!r} is not a topic name; give persistent://tenant/namespace/topic")
    if not (all(_TOPIC_PART.fullmatch(part) for part in parts[:2]) and parts[2]):
        raise ValueError(f"{name!r} has an empty part or a character that is not allowed")
    return f"persistent://{'/'.join(parts)}"


def _access(fields: _OptionReader) -> Access:
    """Credentials and TLS settings, without those whose options are invalid."""
    allow_insecure = fields.read("tlsAllowInsecureConnection", _parse_bool, False)
    verify = fields.read("tlsHostnameVerificationEnable", _parse_bool, not allow_insecure)
    if allow_insecure and verify:
        fields.problems.append(
            "tlsHostnameVerificationEnable=true has no effect with tlsAllowInsecureConnection=true"
        )
    found = _credentials(fields)
    urls = (fields.values.get(name, "").strip() for name in ("service.url", "admin.url"))
    if not any(url.startswith(("pulsar+ssl:", "https:")) for url in urls):
        fields.problems.extend(
            f"option {name} has no effect: no URL begins with pulsar+ssl:// or https://"
            for name in (*TLS_OPTIONS, "authParams")
            if name in fields.values and (name != "authParams" or "key_path" in found)
        )
    return Access(
        trust_path=fields.read("tlsTrustCertsFilePath", _parse_path, None),
        allow_insecure=allow_insecure,
        verify_hostname=verify,
        **(_certificate_options(fields, found) | found),
    )


def _certificate_options(
    fields: _OptionReader, found: Mapping[str, object]
) -> dict[str, str | None]:
    """The certificate and the key of their own options; ``found`` are the credentials."""
    names = ("tlsCertificateFilePath", "tlsKeyFilePath")
    paths = [fields.read(name, _parse_path, None) for name in names]
    if (paths[0] is None) != (paths[1] is None):
        fields.problems.append(f"options {names[0]} and {names[1]} belong together; set both")
    elif paths[0] is not None and "key_path" in found:
        fields.problems.append(f"option {names[0]}: authParams name a certificate, too")
    return {"certificate_path": paths[0], "key_path": paths[1]}


def _credentials(fields: _OptionReader) -> dict[str, Any]:
    """The fields of the credentials; none if they are absent or invalid."""
    plugin, params = (fields.values.get(name) for name in ("authPluginClassName", "authParams"))
    if plugin is None and params is None:
        return {}
    if plugin is None or params is None:
        fields.problems.append(
            "options authPluginClassName and authParams belong together; set both"
        )
        return {}
    try:
        return credentials(plugin.strip(), params.strip(), fields.environment)
    except ValueError as error:
        fields.problems.append(f"option {error}")
        return {}


def _topics(fields: _OptionReader) -> tuple[str, ...]:
    """The topics to read; exactly one of ``topic`` and ``topics`` must be given."""
    if ("topic" in fields.values) == ("topics" in fields.values):
        fields.problems.append("give exactly one of the options topic and topics")
        return ()
    if "topic" in fields.values:
        return fields.read("topic", lambda text: (full_topic_name(text),), ())
    return fields.read("topics", _parse_topics, ())


def _parse_topics(text: str) -> tuple[str, ...]:
    names = tuple(full_topic_name(part) for part in text.split(","))
    if len(set(names)) != len(names):
        raise ValueError("a topic is named twice")
    return names


def _parse_service_url(text: str) -> str:
    if not re.fullmatch(r"pulsar(\+ssl)?://[^\s/]+/?", text):
        raise ValueError("give pulsar://host:port (or pulsar+ssl://)")
    return text


def _parse_admin_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("give http://host:port (or https://)")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError("give no user, query or fragment")
    return text.rstrip("/")


def _without_prefix(key: str) -> str:
    """An option without ``pulsar.client.`` or ``pulsar.admin.``, the JVM connector's prefixes."""
    bare = key.removeprefix("pulsar.client.").removeprefix("pulsar.admin.")
    return bare if bare in {name.lower() for name in ACCESS_OPTIONS} else key


def _without_password(text: str) -> str:
    """A text for an error message, without a user and password in a URL."""
    return re.sub(r"//[^/@\s]*@", "//***@", text)


def _parse_path(text: str) -> str | None:
    if not text:
        raise ValueError("give the path of a file")
    return text


def _parse_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("give true or false")
    return text.lower() == "true"


def _integer(minimum: int, maximum: int) -> Callable[[str], int]:
    """A parser of whole numbers within these bounds, both inclusive."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,19}", text) or not minimum <= int(text) <= maximum:
            raise ValueError(f"give a whole number from {minimum} to {maximum}")
        return int(text)

    return parse


def _parse_columns(text: str) -> tuple[str, ...]:
    """A subset of the columns, in the order of the source."""
    wanted = [part.strip() for part in text.split(",")]
    unknown = [name for name in wanted if name not in COLUMNS]
    if unknown:
        raise ValueError(f"no column {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    if len(set(wanted)) != len(wanted):
        raise ValueError("a column is named twice")
    return tuple(name for name in COLUMNS if name in wanted)


def _parse_start_or_end(text: str) -> StartOrEnd:
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        document = None
    if not isinstance(document, dict) or not document:
        raise ValueError('give earliest, latest or JSON such as {"<topic>": "L:E:P:B"}')
    positions: dict[str, str] = {}
    for name, position in document.items():
        topic = full_topic_name(name)
        if topic in positions:
            raise ValueError(f"{topic} is named twice")
        if not isinstance(position, str):
            raise ValueError(f"{topic} must have a text such as L:E:P:B, not {position!r}")
        if position not in (EARLIEST, LATEST):
            parse_position(position, topic)
        positions[topic] = position
    return positions
