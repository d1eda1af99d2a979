"""Write the pages of docs/reference/ from the tables in the code.

``--check`` changes nothing and fails when a committed page differs from what would be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cli_reference import cli_page
from committed_files import write_or_check

from headgate.admin.routing import Route
from headgate.admin.table import ROUTES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.policy.settings import SETTINGS, SettingInfo
from headgate.record.fields import FIELDS, MAJOR_VERSION, STATE_FIELD_NAMES, Field
from headgate.telemetry.otel.instruments import INSTRUMENTS, Instrument
from headgate.telemetry.prometheus.series import SERIES
from pyspark_pulsar.chunks import ENTRIES_BETWEEN_MAX
from pyspark_pulsar.columns import COLUMN_MEANINGS, spark_schema
from pyspark_pulsar.options import COLUMNS, OPTIONS

FOLDER = Path("docs/reference")

_NOTE = "<!-- Written by tools/generate_reference.py from {}. Change that, then run the tool. -->\n"


def pages() -> dict[Path, str]:
    """Every generated page's path below the repository root, and its text."""
    return {
        FOLDER / "settings.md": settings_page(),
        FOLDER / "rest.md": rest_page(),
        FOLDER / "cli.md": _NOTE.format("src/headgate/cli") + cli_page(table),
        FOLDER / "metrics.md": metrics_page(),
        FOLDER / "telemetry.md": telemetry_page(),
        FOLDER / "tables.md": tables_page(),
        FOLDER / "source.md": source_page(),
    }


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; a bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def settings_page() -> str:
    """The keys of broker.conf."""
    return (
        _NOTE.format("src/headgate/policy/settings.py") + "# Settings\n\n"
        "Keys, types and defaults are Pulsar's where Pulsar has the key; the others begin\n"
        "with `headgate`. They are read from `--config FILE` (the syntax of `broker.conf`) and\n"
        "from `--set KEY=VALUE`, which wins. A *dynamic* one may also be changed while the broker\n"
        "runs, with `POST /admin/v2/brokers/configuration/KEY/VALUE`; it acts at once, is kept,\n"
        "and wins over file and command line until it is deleted there.\n\n"
        + table(
            ("key", "default", "allowed", "dynamic", "meaning"),
            [_setting_row(info) for info in SETTINGS.values()],
        )
    )


def _setting_row(info: SettingInfo) -> tuple[str, ...]:
    default = str(info.default).lower() if isinstance(info.default, bool) else str(info.default)
    return (
        f"`{info.name}`",
        f"`{default}`" if default else "empty",
        info.allowed,
        "yes" if info.dynamic else "",
        info.doc,
    )


def rest_page() -> str:
    """The routes of the admin API."""
    return (
        _NOTE.format("src/headgate/admin") + "# Admin REST\n\n"
        "Paths, bodies, statuses and texts are those of Pulsar 4.0. Every refusal has the body\n"
        '`{"reason": "..."}`. Paths under `/admin/v2/headgate` are Headgate\'s own. What is not\n'
        "listed is not built. `GET /admin/v2/openapi.json` describes the bodies, too. The last\n"
        "column names the operation that will be authorized.\n\n"
        + table(("", "path", "what it does", "operation"), [_route_row(route) for route in ROUTES])
    )


def _route_row(route: Route) -> tuple[str, ...]:
    path = f"`{route.path}`"
    if route.query:
        path += ", query " + ", ".join(f"`{query.name}`" for query in route.query)
    return route.method, path, route.summary, f"`{route.operation.value}`"


def metrics_page() -> str:
    """The series of /metrics, and the instruments of OpenTelemetry."""
    source = "src/headgate/telemetry/{series,instruments}.py"
    return (
        _NOTE.format(source) + "# Metrics\n\n"
        "`GET /metrics` (Prometheus text 0.0.4). Series that begin with `pulsar_` have the\n"
        "names, labels and types of a Pulsar 4.0 broker, so its dashboards work. Those of parts\n"
        "that Headgate does not have are absent, not zero. With\n"
        "`splitTopicAndPartitionLabelInPrometheus` whatever has a label `topic` has\n"
        "`partition`, too.\n\n"
        + table(
            ("series", "type", "labels", "unit", "meaning"),
            [(f"`{s.name}`", s.type, ", ".join(s.labels), s.unit, s.meaning) for s in SERIES],
        )
        + "\n## OpenTelemetry\n\n"
        "What is exported when [that is switched on](../guide/opentelemetry.md). Counters are\n"
        "cumulative, since the subject was loaded or connected. Instruments that begin with\n"
        "`pulsar.` have Pulsar's names, units and attributes. One that has nothing to tell of a\n"
        "subject, such as a quota that it never had, is absent. `pulsar.topic` is the name of the\n"
        "whole topic, and only a partition has a `pulsar.partition.index`.\n"
        + "".join(_instruments(*level) for level in INSTRUMENTS)
    )


def _instruments(of: str, attributes: Sequence[str], instruments: Sequence[Instrument]) -> str:
    """Those of one level."""
    common = f"With {', '.join(f'`{name}`' for name in attributes)}.\n\n" if attributes else ""
    return f"\n### Of {of}\n\n{common}" + table(
        ("instrument", "kind", "more attributes", "unit", "meaning"),
        [
            (f"`{i.name}`", i.kind.value, ", ".join(i.attributes), f"`{i.unit}`", i.meaning)
            for i in instruments
        ],
    )


def telemetry_page() -> str:
    """The columns of the telemetry record."""
    text = (
        _NOTE.format("src/headgate/record/fields.py")
        + f"# The telemetry record, version {MAJOR_VERSION}\n\n"
        "What a broker publishes to the topic `headgateTelemetryTopic` at every multiple of\n"
        "`headgateTelemetryIntervalMs`: protobuf messages (`proto/headgate_record.proto`), in\n"
        "columns. A *cumulative* value only grows from `counting_since_ns` on, so that a lost\n"
        "message costs resolution and never amounts; a *level* is as it was at `covered_to_ns`.\n"
        "Fields are only ever added. The tables of `headgate pipeline` have these columns under\n"
        "the same names.\n"
    )
    for kind, fields in FIELDS.items():
        text += f"\n## {kind.value.capitalize()} rows\n\n" + table(
            ("column", "type", "nature", "unit", "meaning"),
            [_field_row(field) for field in fields if field.name not in STATE_FIELD_NAMES[1:]],
        )
        if any(field.name in STATE_FIELD_NAMES for field in fields):
            names = ", ".join(f"`{name}`" for name in STATE_FIELD_NAMES[1:])
            text += f"\nAnd likewise, one for each state: {names}.\n"
    return text


def _field_row(field: Field) -> tuple[str, ...]:
    return f"`{field.name}`", field.type.value, field.nature.value, field.unit, field.meaning


def tables_page() -> str:
    """The pipeline's tables."""
    text = (
        _NOTE.format("src/headgate/pipeline/tables/") + "# The pipeline's tables\n\n"
        "Delta tables below the folder that `--out` names; anything that reads Delta reads them.\n"
        "Columns that are also fields of [the telemetry record](telemetry.md) have its meaning;\n"
        "in a row of a minute a cumulative one holds its growth inside it. Times are UTC.\n"
    )
    recorded = {field.name for fields in FIELDS.values() for field in fields}
    wide = ("bronze_samples", "intervals")
    for described in TABLES.values():
        text += f"\n## {described.name}\n\n"
        text += "Partitioned by " + ", ".join(f"`{name}`" for name in described.partition_by)
        text += ".\n\n" + table(
            ("column", "type", "meaning"),
            [
                (f"`{column.name}`", column.type.value, column.comment)
                for column in described.columns
                if column.name not in recorded or described.name not in wide
            ],
        )
        if described.name in wide:
            text += "\nAnd every column of the record's topic, subscription and limiter rows.\n"
    return text


_OTHER_THAN_JVM = (
    "\n## Other than in the JVM's connector\n\n"
    "Options and columns have the names of StreamNative's connector. What differs:\n\n"
    "- It reads only. There are no `topicsPattern`, no subscription options, no\n"
    "  `waitingForNonExistedTopic` and no `pulsar.admin.*`, `pulsar.reader.*` or\n"
    "  `pulsar.producer.*`; an option that is not above is refused.\n"
    "- `admin.url` is always needed: ends, ledgers and times are asked there.\n"
    "- `value` is the message as bytes, whatever the topic's schema.\n"
    "- Message ids in offsets are texts, not arrays of bytes, and may name a message within a\n"
    "  batched entry. The one in `startingOffsets` is read, too.\n"
    "- `startingTime` and `endingTime` are one time for all topics, and hold for each row.\n"
    "  `startingTime` also begins a stream without a checkpoint.\n"
    "- `failOnDataLoss` is `true` unless set, and also of batch reads.\n"
    "- `maxBytesPerTrigger` is shared by backlog; `maxRowsPerTrigger`, `minPartitions` and\n"
    "  `columns` are new.\n"
)
"""Section of the page about the source."""


def source_page() -> str:
    """The options and columns of the Spark source."""
    types = {field.name: field.dataType.simpleString() for field in spark_schema(COLUMNS).fields}
    return (
        _NOTE.format("src/pyspark_pulsar/options.py") + '# The Spark source, `format("pulsar")`\n\n'
        "Options of `spark.read` and `spark.readStream`. Their case does not matter; one that is\n"
        "unknown, or has no effect on the kind of query, is refused by name. Topics without a\n"
        "tenant are in `public/default`. A message id is `ledger:entry:partition:batch index`;\n"
        "without a batch index it means the whole entry.\n\n"
        + table(
            ("option", "default", "allowed", "for", "meaning"),
            [(f"`{o.name}`", o.default, o.allowed, o.queries, o.meaning) for o in OPTIONS],
        )
        + "\n## Tokens and TLS\n\n"
        "They hold for the binary protocol and the admin API. A redirect of the admin API takes\n"
        "the token along, but not from `https` to `http`. What will not mend ends a query at\n"
        "once: a token that is refused (401, 403, AuthenticationError), a certificate that is\n"
        "not trusted. No error, log or checkpoint of the source holds a token; `file:` keeps it\n"
        "out of Spark's own plans and options as well.\n"
        "\n## Brokers that are gone\n\n"
        "Every wait has a limit. One question to the admin API ends within `adminTimeoutMs`, one\n"
        "operation of the client within `operationTimeoutMs`. A stream that runs takes an admin\n"
        "API that does not answer as no news, and a task waits for its broker, each for\n"
        "`pollTimeoutMs`. Nothing is lost or read twice by that: offsets are in the checkpoint,\n"
        "and a row counts once its place is behind the last one taken.\n"
        "\n## Messages that are gone\n\n"
        "No subscription is made, so a topic must retain what is to be read. A start whose ledger\n"
        "was trimmed, a partition that is gone and a topic that is another one than in the\n"
        "checkpoint are lost data: `failOnDataLoss` decides. Another one it is where the place in\n"
        "the checkpoint is none that the topic can have had, because its message ids began anew,\n"
        "as after the loss of a broker's data directory; it is then read from its first message.\n"
        "Ids alone cannot tell once the new topic has an entry at that very place: what lies\n"
        "before it is not read then.\n"
        + "\n## Columns\n\n"
        + table(
            ("column", "type", "meaning"),
            [(f"`{name}`", types[name], COLUMN_MEANINGS[name]) for name in COLUMNS],
        )
        + "\n## Keys\n\n"
        "Java's `keyBytes` and the keys of separated `KeyValue` schemas travel as base64, and\n"
        "`__key` holds the bytes. An empty key is empty, and null means that there is none. The\n"
        "client of Python shows neither, so a task asks the admin API about the first message of\n"
        "each producer whose key is base64 or empty, and takes the rest of that producer's for\n"
        "the same. Where the API does not tell, a warning says so: base64 is left as it is, and\n"
        "an empty key is null. A query without `__key` asks nothing.\n" + "\n## Publish times\n\n"
        "Producers set them, by their own clocks and before they send, so a topic does not hold\n"
        "its messages in their order. A batch reads from the place that the broker finds for\n"
        "`startingTime` less `publishTimeSkewMs` to that for `endingTime` and as much more, and\n"
        "each message is checked by itself. So both ends are exact while the clocks of all\n"
        "producers and of the broker are no further apart than that, what a message waited\n"
        "before it was stored included: a producer's repetitions, replication. Messages of a\n"
        "clock that is further ahead may be missing behind `startingTime`, of one that is further\n"
        "behind before `endingTime`. A stream begins at the first of these places. A task that\n"
        "meets publish times further out of order logs a warning that says how far.\n\n"
        "Each end costs the reading of so much more. An `endingTime` less than\n"
        "`publishTimeSkewMs` ago is searched by no clock: the topic is read to its end. Nor is\n"
        "either time if `publishTimeSkewMs` is longer than the time since 1970, say\n"
        "9223372036854775: then the whole topic is read, and both ends are exact whatever the\n"
        "clocks say.\n" + "\n## Chunked messages\n\n"
        "A message that its producer sent in chunks is one row, of the batch or task whose range\n"
        "holds its last chunk, however ranges are cut. If it begins before that range, the task\n"
        "reads it by itself, after its other rows: `__messageId` has the order. For that the\n"
        "admin service is asked once about every entry that gave no message, which other chunks\n"
        "and transaction markers are as well. One that is not complete at the end is read by the\n"
        "batch in which it completes. A broker that cannot show a chunk, as Pulsar cannot if it\n"
        "is compressed, leaves in doubt whether something was lost: `failOnDataLoss` decides.\n"
        "So it does on a message of which a chunk is gone, or lies more than\n"
        f"{ENTRIES_BETWEEN_MAX:,} other entries before the next one.\n" + _OTHER_THAN_JVM
    )


if __name__ == "__main__":
    raise SystemExit(write_or_check(__doc__, pages))
