"""The source's options: names, defaults, and the checks on them.

Options reach the source as strings. An unknown one is an error, because a misspelt option that is
silently ignored costs an afternoon; so is one that has no effect on the kind of query it is
given to. All faults are reported together.

Pure: no I/O, no Spark.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
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
"""Every column the source can give, in the order in which it gives them."""


PUBLISH_TIME_SKEW_MS = 600_000
"""Two clocks may each be five minutes off, as much as Kerberos admits, in opposite directions."""


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """One option: its usual spelling, what it takes, and what it is for."""

    name: str
    default: str
    """In words where it is no plain value; ``required`` if there is none."""
    allowed: str
    meaning: str
    queries: str = "batch, stream"
    """The kinds of query that it is for."""


_MESSAGE_IDS = "JSON of message ids by topic, `L:E`, `L:E:P` or `L:E:P:B`"

OPTIONS = (
    OptionInfo("service.url", "required", "`pulsar://HOST:PORT`, `pulsar+ssl://...`",
               "Where messages are read: the brokers' binary port."),
    OptionInfo("admin.url", "required", "`http://HOST:PORT`, `https://...`",
               "The admin API, for partitions, ends, ledgers and times."),
    OptionInfo("authPluginClassName", "none",
               "`org.apache.pulsar.client.impl.auth.AuthenticationToken` or `token`, "
               "`org.apache.pulsar.client.impl.auth.AuthenticationTls` or `tls`",
               "What `authParams` is, for both URLs. Also as `pulsar.client.authPluginClassName`, "
               "and so the four below."),
    OptionInfo("authParams", "none",
               "`token:TOKEN`, `file:///PATH`; `tlsCertFile:PATH,tlsKeyFile:PATH`",
               "The token, or the file that holds it, on every worker: read anew for each "
               "connection and request. Or the client's certificate and key."),
    OptionInfo("tlsTrustCertsFilePath", "public authorities", "a path",
               "PEM file of the certificate authorities to trust, on every worker."),
    OptionInfo("tlsAllowInsecureConnection", "`false`", "`true`, `false`",
               "Trust any certificate: for tests alone."),
    OptionInfo("tlsHostnameVerificationEnable", "`true`", "`true`, `false`",
               "Whether a certificate must be of the host in the URL. Java's clients have `false` "
               "by default."),
    OptionInfo("topic", "one of the two", "a name or `persistent://TENANT/NAMESPACE/NAME`",
               "The topic; of a partitioned one all partitions, also those added later."),
    OptionInfo("topics", "one of the two", "names with commas between them",
               "Several topics in one frame; `__topic` tells them apart."),
    OptionInfo("startingOffsets", "`earliest` in a batch, `latest` in a stream",
               f"`earliest`, `latest`, {_MESSAGE_IDS}",
               "The first message read. A stream with a checkpoint goes on from that instead; one "
               "that begins at an end has an empty first batch, which fixes where it begins."),
    OptionInfo("endingOffsets", "`latest`", f"`latest`, {_MESSAGE_IDS}",
               "The last message read; fixed when the query is planned.", "batch"),
    OptionInfo("startingTime", "none", "milliseconds since the epoch",
               "Only messages published then or later. A stream with a checkpoint goes on from "
               "that, and leaves out what was published before."),
    OptionInfo("endingTime", "none", "milliseconds since the epoch",
               "Only messages published before.", "batch"),
    OptionInfo("publishTimeSkewMs", f"`{PUBLISH_TIME_SKEW_MS}`", "0 to 9223372036854775 ms",
               "How far the clocks of producers and broker are apart at most, a message's delay "
               "included: both times are [searched so much further](#publish-times)."),
    OptionInfo("failOnDataLoss", "`true`", "`true`, `false`",
               "Whether messages that were trimmed before they were read fail the query, and a "
               "topic whose message ids began anew; otherwise a warning is logged, and that topic "
               "is read from its first message."),
    OptionInfo("minPartitions", "`1`", "1 to 100000",
               "At least so many tasks: large partitions are cut at entries."),
    OptionInfo("maxRowsPerTrigger", "none", "a whole number from 1",
               "About so many rows a trigger, shared by backlog; exact to one entry a partition.",
               "stream"),
    OptionInfo("maxBytesPerTrigger", "none", "a whole number from 1",
               "About so many stored bytes a trigger; both limits may be set.", "stream"),
    OptionInfo("columns", "all", "names with commas between them",
               "Only these columns: what is left out is not decoded."),
    OptionInfo("receiverQueueSize", "16 to 1000, by entry size", "1 to 100000",
               "Messages that a task's client may hold."),
    OptionInfo("pollTimeoutMs", "`120000`", "100 to 86400000 ms",
               "Silence for which a task waits while messages are due, and a stream that runs "
               "for a cluster that does not answer; then it fails."),
    OptionInfo("adminTimeoutMs", "`30000`", "100 to 86400000 ms",
               "Limit of one question to the admin API, its repetitions included."),
    OptionInfo("operationTimeoutMs", "`30000`", "1000 to 86400000 ms",
               "Limit of the client's own operations, such as creating a reader."),
)  # fmt: skip
"""Every option the source knows. Spark ignores the case of option names."""

OPTION_NAMES = tuple(option.name for option in OPTIONS)
BATCH_ONLY = tuple(option.name for option in OPTIONS if option.queries == "batch")
STREAM_ONLY = tuple(option.name for option in OPTIONS if option.queries == "stream")

_TOPIC_PART = re.compile(r"[A-Za-z0-9_\-=:.]+")
_INT64_MAX = (1 << 63) - 1
_DAY_MS = 86_400_000
_T = TypeVar("_T")

StartOrEnd = str | Mapping[str, str]
"""``earliest``, ``latest``, or one of these or an ``L:E:P:B`` text per topic or partition."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach the cluster. Workers share one client per equal value."""

    service_url: str
    admin_url: str
    operation_timeout_ms: int
    admin_timeout_ms: int
    access: Access = NO_ACCESS


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All options, checked and with defaults filled in.

    ``starting_offsets`` and ``ending_offsets`` are None where the query's kind decides the
    default. ``starting_time_ms`` is inclusive and ``ending_time_ms`` exclusive, both publish time
    in epoch milliseconds. ``given`` holds the options that the caller set, in their usual
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
    poll_timeout_ms: int
    given: frozenset[str]

    def check_batch(self) -> None:
        """Raise :class:`OptionsError` if an option was given that only a stream obeys."""
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
        """Raise :class:`OptionsError` if an option was given that only a batch read obeys."""
        problems = [
            f"option {name} is for batch reads; a stream has no end"
            for name in BATCH_ONLY
            if name in self.given
        ]
        problems += self._skew_problems("startingTime")
        if problems:
            raise OptionsError(problems)

    def _skew_problems(self, *times: str) -> list[str]:
        """What is wrong with a skew of clocks where these options say what is searched."""
        if "publishTimeSkewMs" not in self.given or self.given & set(times):
            return []
        return [f"publishTimeSkewMs has no effect without {' or '.join(times)}"]


class _Fields:
    """The caller's options under their usual spelling, and the faults found so far."""

    def __init__(self, options: Mapping[str, str]) -> None:
        usual_spelling = {name.lower(): name for name in OPTION_NAMES}
        self.values: dict[str, str] = {}
        self.problems: list[str] = []
        for key, value in options.items():
            name = usual_spelling.get(_without_prefix(key.lower()))
            if name in self.values:
                self.problems.append(f"option {name} is given twice")
            elif name is None:
                near = difflib.get_close_matches(key.lower(), usual_spelling, n=1)
                hint = f"; did you mean {usual_spelling[near[0]]}?" if near else ""
                self.problems.append(f"unknown option {key}{hint}")
            else:
                self.values[name] = value

    def read(self, name: str, parse: Callable[[str], _T], default: _T) -> _T:
        """The parsed option, or ``default`` when it is absent or wrong (then noted)."""
        text = self.values.get(name)
        if text is None:
            return default
        try:
            return parse(text.strip())
        except (ValueError, OffsetError) as error:
            shown = name if name in ACCESS_OPTIONS else f"{name}={_without_user(text)!r}"
            self.problems.append(f"option {shown}: {error}")
            return default

    def require(self, name: str, parse: Callable[[str], str]) -> str:
        """As :meth:`read`, but absence is a fault too."""
        if name not in self.values:
            self.problems.append(f"option {name} is required")
        return self.read(name, parse, "")


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Check the options of a query and fill in defaults.

    Raises :class:`OptionsError` that lists every fault.
    """
    fields = _Fields(options)
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
        poll_timeout_ms=fields.read("pollTimeoutMs", _integer(100, _DAY_MS), 120_000),
        given=frozenset(fields.values),
    )
    for offsets, time in (("startingOffsets", "startingTime"), ("endingOffsets", "endingTime")):
        if offsets in fields.values and time in fields.values:
            fields.problems.append(f"options {offsets} and {time} exclude each other")
    start_ms, end_ms = parsed.starting_time_ms, parsed.ending_time_ms
    if start_ms is not None and end_ms is not None and start_ms > end_ms:
        fields.problems.append(f"startingTime {start_ms} lies behind endingTime {end_ms}")
    if fields.problems:
        raise OptionsError(fields.problems)
    return parsed


def full_topic_name(name: str) -> str:
    """``t``, ``tenant/ns/t`` or a full name, as ``persistent://tenant/ns/t``.

    Raises :class:`ValueError` for anything else. Only persistent topics can be read again.
    """
    text = name.strip()
    domain, separator, rest = text.partition("://")
    if not separator:
        domain, rest = "persistent", text
    if domain == "non-persistent":
        raise ValueError(f"{name!r} is not persistent: it keeps nothing that could be read")
    parts = rest.split("/")
    if not separator and len(parts) == 1:
        parts = ["public", "default", *parts]
    if domain != "persistent" or len(parts) != 3:
        raise ValueError(f"{name!r} is not a topic name; give persistent://tenant/namespace/topic")
    if not (all(_TOPIC_PART.fullmatch(part) for part in parts[:2]) and parts[2]):
        raise ValueError(f"{name!r} has an empty part or a character that is not allowed")
    return f"persistent://{'/'.join(parts)}"


def _access(fields: _Fields) -> Access:
    """Credentials and rules of TLS; none where an option is wrong."""
    allow_insecure = fields.read("tlsAllowInsecureConnection", _parse_bool, False)
    verify = fields.read("tlsHostnameVerificationEnable", _parse_bool, not allow_insecure)
    if allow_insecure and verify:
        fields.problems.append(
            "tlsHostnameVerificationEnable=true means nothing with tlsAllowInsecureConnection=true"
        )
    found = _credentials(fields)
    urls = (fields.values.get(name, "").strip() for name in ("service.url", "admin.url"))
    if not any(url.startswith(("pulsar+ssl:", "https:")) for url in urls):
        fields.problems.extend(
            f"option {name} has no effect: neither pulsar+ssl:// nor https:// is among the URLs"
            for name in (*TLS_OPTIONS, "authParams")
            if name in fields.values and (name != "authParams" or "key_path" in found)
        )
    return Access(
        token=found.get("token"),
        token_path=found.get("token_path"),
        certificate_path=found.get("certificate_path"),
        key_path=found.get("key_path"),
        trust_path=fields.read("tlsTrustCertsFilePath", _parse_path, None),
        allow_insecure=allow_insecure,
        verify_hostname=verify,
    )


def _credentials(fields: _Fields) -> dict[str, str]:
    """The fields of credentials that are given; none where they are wrong."""
    plugin, params = (fields.values.get(name) for name in ("authPluginClassName", "authParams"))
    if plugin is None and params is None:
        return {}
    if plugin is None or params is None:
        fields.problems.append("options authPluginClassName and authParams go together; give both")
        return {}
    try:
        return credentials(plugin.strip(), params.strip())
    except ValueError as error:
        fields.problems.append(f"option {error}")
        return {}


def _topics(fields: _Fields) -> tuple[str, ...]:
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
    """The JVM's connector says ``pulsar.client.`` before what it hands to its client."""
    bare = key.removeprefix("pulsar.client.")
    return bare if bare in {name.lower() for name in ACCESS_OPTIONS} else key


def _without_user(text: str) -> str:
    """A text to be shown, without what may be a password in a URL."""
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
    """A parser of whole numbers within the bounds, both included."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,19}", text) or not minimum <= int(text) <= maximum:
            raise ValueError(f"give a whole number from {minimum} to {maximum}")
        return int(text)

    return parse


def _parse_columns(text: str) -> tuple[str, ...]:
    """A subset of the columns, always in the source's own order."""
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
    places: dict[str, str] = {}
    for name, place in document.items():
        topic = full_topic_name(name)
        if topic in places:
            raise ValueError(f"{topic} is named twice")
        if not isinstance(place, str):
            raise ValueError(f"{topic} must have a text such as L:E:P:B, not {place!r}")
        if place not in (EARLIEST, LATEST):
            parse_position(place, topic)
        places[topic] = place
    return places
