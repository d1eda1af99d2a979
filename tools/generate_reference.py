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
from headgate.agent.series import AGENT_SERIES
from headgate.app.sign_in.routes import METHODS as SIGN_IN_METHODS
from headgate.app.sign_in.routes import OPERATION as SIGN_IN_OPERATION
from headgate.broker.authorization import DEMANDS
from headgate.pipeline.source.options import OPTIONS as TABLE_OPTIONS
from headgate.pipeline.tables.catalogue import CHECKED, TABLES
from headgate.pipeline.tables.columns import Table, TableColumn
from headgate.pipeline.tables.expectations import Expectation, Rule, expectations, range_text
from headgate.pipeline.tables.quality import QUALITY
from headgate.policy.access_rules import RULES, Access, Scope
from headgate.policy.setting_info import SettingInfo
from headgate.policy.settings import SETTINGS
from headgate.record.fields import FIELDS, MAJOR_VERSION, STATE_FIELD_NAMES, Field
from headgate.telemetry.otel.instruments import INSTRUMENTS, Instrument
from headgate.telemetry.prometheus.route import OPERATION as METRICS_OPERATION
from headgate.telemetry.prometheus.series.catalogue import SERIES
from headgate.wire.commands import COMMANDS
from pyspark_pulsar.chunk_search import (
    ENTRIES_BEFORE_FIRST,
    ENTRIES_BEFORE_MAX,
    SEARCHED_MAX,
    SEARCHES_MAX,
)
from pyspark_pulsar.columns import COLUMN_MEANINGS, spark_schema
from pyspark_pulsar.options import COLUMNS, OPTIONS
from pyspark_pulsar.range_reader import REPORTS_MAX

FOLDER = Path("docs/reference")

_NOTE = "<!-- Written by tools/generate_reference.py from {}. Change that, then run the tool. -->\n"


def pages() -> dict[Path, str]:
    """Every generated page's path below the repository root, and its text."""
    return {
        FOLDER / "settings.md": settings_page(),
        FOLDER / "rest.md": rest_page(),
        FOLDER / "permissions.md": permissions_page(),
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
        "This page lists every setting of a broker. If Pulsar has the key, key, type and default\n"
        "are Pulsar's; the others begin with `headgate`. The broker reads them from `--config\n"
        "FILE` (the syntax of `broker.conf`) and from `--set KEY=VALUE`, which wins. You can\n"
        "change a *dynamic* setting while the broker runs, with `POST\n"
        "/admin/v2/brokers/configuration/KEY/VALUE`. It acts at once, is stored, and overrides\n"
        "file and command line until you delete it there.\n\n"
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
        "This page lists every route. Paths, bodies, statuses and texts are those of Pulsar 4.0;\n"
        "paths under `/admin/v2/headgate` are additions of Headgate. Every refusal has the body\n"
        '`{"reason": "..."}`. A route that is not listed does not exist.\n'
        "`GET /admin/v2/openapi.json` also describes the bodies. `/metrics` and what serves the\n"
        "page (`/headgate/`) are no routes of the API. The last column names the\n"
        "operation; [permissions](permissions.md) says which roles may perform it.\n\n"
        + table(("", "path", "effect", "operation"), [_route_row(route) for route in ROUTES])
    )


def _route_row(route: Route) -> tuple[str, ...]:
    path = f"`{route.path}`"
    if route.query:
        path += ", query " + ", ".join(f"`{query.name}`" for query in route.query)
    return route.method, path, route.summary, f"`{route.operation.value}`"


def permissions_page() -> str:
    """Which roles may send which command and request."""
    return (
        _NOTE.format("src/headgate/policy/access_rules.py") + "# Permissions\n\n"
        "This page lists who may send each command and each request if `authorizationEnabled` is\n"
        "set. *produce* and *consume* are granted on a topic or its namespace. Administrators of\n"
        "a tenant may also do everything that a grant in it allows, and super users everything.\n"
        "[Authorization](../guide/authorization.md) shows how to grant, and `headgate admin\n"
        "permissions check ROLE OPERATION RESOURCE` why a role may do something or not.\n"
        "\n## Commands of the binary protocol\n\n"
        + table(("command", "operation", "on", "who may"), _command_rows())
        + "\n## Requests to the web port\n\n"
        + table(
            ("", "path", "operation", "on", "who may"),
            [
                *(
                    (route.method, f"`{route.path}`", *_rule_cells(route.operation.value))
                    for route in ROUTES
                ),
                ("GET", "`/metrics`", *_rule_cells(METRICS_OPERATION)),
                *(
                    (method, f"`{path}`", *_rule_cells(SIGN_IN_OPERATION))
                    for path, method in SIGN_IN_METHODS.items()
                ),
            ],
        )
    )


def _command_rows() -> Iterable[Sequence[str]]:
    for kind, facts in COMMANDS.items():
        if not facts.built:
            continue
        name = f"`{facts.name}`"
        if kind in DEMANDS:
            yield name, *_rule_cells(facts.operation)
        elif RULES[facts.operation].access is Access.EVERYBODY:
            yield name, f"`{facts.operation}`", "the connection", Access.EVERYBODY.value
        else:
            made = "a producer or consumer of the connection"
            yield name, f"`{facts.operation}`", made, "the client that was allowed to make it"
    creates = "`PRODUCER` that also creates a subscription"
    yield creates, "`topic.produce`, `topic.consume`", Scope.TOPIC.value, "produce and consume"


def _rule_cells(operation: str) -> tuple[str, str, str]:
    rule = RULES[operation]
    return f"`{operation}`", rule.scope.value, rule.access.value


def metrics_page() -> str:
    """The series of /metrics, and the instruments of OpenTelemetry."""
    source = (
        "src/headgate/{telemetry/prometheus/series/*,telemetry/otel/instruments,agent/series}.py"
    )
    return (
        _NOTE.format(source) + "# Metrics\n\n"
        "This page lists the series of `GET /metrics` (Prometheus text 0.0.4) and the\n"
        "instruments of OpenTelemetry. Series that begin with `pulsar_` have the names, labels\n"
        "and types of a Pulsar 4.0 broker, so its dashboards work. Series of features that\n"
        "Headgate lacks are absent, not zero. With `splitTopicAndPartitionLabelInPrometheus`\n"
        "each series with a label `topic` also has `partition`.\n\n"
        + table(
            ("series", "type", "labels", "unit", "meaning"),
            [(f"`{s.name}`", s.type, ", ".join(s.labels), s.unit, s.meaning) for s in SERIES],
        )
        + "\n## Of the agent\n\n"
        "`headgate agent` serves these at its own port ([guide](../guide/agent.md)).\n\n"
        + table(
            ("series", "type", "labels", "unit", "meaning"),
            [(f"`{s.name}`", s.type, ", ".join(s.labels), s.unit, s.meaning) for s in AGENT_SERIES],
        )
        + "\n## OpenTelemetry\n\n"
        "The broker exports these instruments [if you switch that\n"
        "on](../guide/opentelemetry.md). Counters are cumulative since the subject was loaded or\n"
        "connected. Instruments that begin with `pulsar.` have Pulsar's names, units and\n"
        "attributes. An instrument without a value for a subject, such as a quota that it never\n"
        "had, is absent. `pulsar.topic` is the name of the whole topic, and only a partition has\n"
        "a `pulsar.partition.index`.\n" + "".join(_instruments(*level) for level in INSTRUMENTS)
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
        "This page lists the columns of the telemetry. At every multiple of\n"
        "`headgateTelemetryIntervalMs` a broker publishes protobuf messages\n"
        "(`proto/headgate_record.proto`) to the topic `headgateTelemetryTopic`. A *cumulative*\n"
        "value only grows from `counting_since_ns` on, so a lost message costs resolution and no\n"
        "amounts; a *level* is the value at `covered_to_ns`. Later versions only add fields. The\n"
        "tables of `headgate pipeline` have the same columns.\n"
    )
    for kind, fields in FIELDS.items():
        text += f"\n## {kind.value.capitalize()} rows\n\n" + table(
            ("column", "type", "nature", "unit", "meaning"),
            [_field_row(field) for field in fields if field.name not in STATE_FIELD_NAMES[1:]],
        )
        if any(field.name in STATE_FIELD_NAMES for field in fields):
            names = ", ".join(f"`{name}`" for name in STATE_FIELD_NAMES[1:])
            text += f"\nThe same for each other state: {names}.\n"
    return text


def _field_row(field: Field) -> tuple[str, ...]:
    return f"`{field.name}`", field.type.value, field.nature.value, field.unit, field.meaning


def tables_page() -> str:
    """The pipeline's tables."""
    text = (
        _NOTE.format("src/headgate/pipeline/tables/") + "# The pipeline's tables\n\n"
        "This page lists the columns of the Delta tables below the folder `--out`. Columns that\n"
        "are also fields of [the telemetry record](telemetry.md) have their meaning there; in a\n"
        "row of a minute a cumulative one holds its growth within the minute. Times are UTC.\n"
        "The table `quality` says for each hour whether the expectations are met\n"
        "([the guide](../guide/pipeline.md#checks-of-the-tables)).\n"
    )
    text += (
        "\n## Reading with Spark\n\n"
        '`format("headgate_tables")` has these options ([the guide](../guide/sql.md)). The case\n'
        "of their names does not matter.\n\n"
    ) + table(
        ("option", "default", "allowed", "for", "meaning"),
        [(f"`{o.name}`", o.default, o.allowed, o.reads, o.meaning) for o in TABLE_OPTIONS],
    )
    return text + "".join(_table_section(described) for described in TABLES.values())


def _table_section(described: Table) -> str:
    """The contract of one table."""
    recorded = {field.name for fields in FIELDS.values() for field in fields}
    is_wide = described.name in ("bronze_samples", "intervals")
    text = f"\n## {described.name}\n\n{described.meaning} "
    text += f"Partitioned by {_names(described.partition_by)}.\n"
    text += f"\n- Key: {_names(described.key)}"
    text += ".\n" if described.is_key_unique else "; a message may be read twice.\n"
    if described is QUALITY:
        text += "- Follows from the files of all tables that are partitioned by hour.\n"
    else:
        text += f"- Follows from {_names(described.follows_from) or 'telemetry'}.\n"
    text += "\n" + table(
        ("column", "type", "unit", "allowed", "meaning"),
        [
            _column_row(column)
            for column in described.columns
            if column.name not in recorded or not is_wide
        ],
    )
    if is_wide:
        text += "\nAnd every column of the record's topic, subscription and limiter rows.\n"
    if described in CHECKED:
        text += "\nExpectations:\n\n" + table(
            ("expectation", "holds if"),
            [(f"`{each.name}`", _expectation_text(each)) for each in expectations(described)],
        )
    return text


def _column_row(column: TableColumn) -> tuple[str, ...]:
    allowed = [range_text(column), ", ".join(column.values)]
    if column.is_required:
        allowed.append("not null")
    return (
        f"`{column.name}`",
        column.type.value,
        column.unit,
        "; ".join(filter(None, allowed)),
        column.comment,
    )


def _expectation_text(each: Expectation) -> str:
    """Rules of columns stand beside the columns."""
    return {
        Rule.REQUIRED: "columns that are not null have a value",
        Rule.RANGE: "numbers are within the allowed range",
        Rule.VALUES: "texts are among the allowed ones, or null",
        Rule.KEY: "no two rows have the same key",
    }.get(each.rule, each.text)


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_MALFORMED_MESSAGES = (
    "\n## Malformed messages\n\n"
    "A broker stores what producers send, and does not look into it. An entry is malformed if\n"
    "no correct producer sends it: its checksum is wrong, it cannot be unpacked, a batch has\n"
    "not the sizes or the number of messages that it claims, or it is larger than\n"
    "`maxMessageBytes`. No message of such an entry is a row. `failOnDataLoss` decides: the\n"
    "query fails and names the entry, or the log of the task names it and the query goes on\n"
    f"behind it. A task names {REPORTS_MAX} of them and counts the others.\n"
    "\n"
    "The source reads entries itself, without `pulsar-client`. Consumers with that library may\n"
    "end at such entries, or get other memory of their process as a message. So let none but\n"
    "trusted roles produce to a topic that such consumers read.\n"
)

_TRANSACTIONS = (
    "\n## Transactions\n\n"
    "A query reads a message of a transaction if that was committed, and none of one that was\n"
    "aborted. Brokers send nothing behind the first message of an open transaction, so a query\n"
    "ends before it, also with `latest`: a later query, or the next batch of a stream, reads on\n"
    "from there when the transaction has ended. The source asks the admin API for that place\n"
    "(`transactionBufferStats`). While the broker does not know it, as when it loads the topic,\n"
    "the source asks again until `adminTimeoutMs` is over.\n\n"
    "Brokers before 4.0 count the marker at the end of a transaction as the last message of its\n"
    "topic, and never send it. A task to which nothing arrives for three seconds asks the admin\n"
    "API what the entries are that remain, and ends if readers get none of them.\n"
)

_OTHER_THAN_JVM = (
    "\n## Differences from the JVM's connector\n\n"
    "Options and columns have the names of StreamNative's connector. The differences:\n\n"
    "- The source only reads. There are no `topicsPattern`, no subscription options, no\n"
    "  `waitingForNonExistedTopic` and no `pulsar.reader.*` or `pulsar.producer.*`; an option\n"
    "  that is not above is refused. One set of credentials is for client and admin API.\n"
    "- `admin.url` is always required: the source gets ends, ledgers and times there.\n"
    "- `value` is the message as bytes, under any schema of the topic.\n"
    "- Message ids in offsets are texts, not arrays of bytes, and may name a message within a\n"
    "  batched entry. The one in `startingOffsets` is read, too.\n"
    "- `startingTime` and `endingTime` are one time for all topics, and apply to each row.\n"
    "  `startingTime` also begins a stream without a checkpoint.\n"
    "- `failOnDataLoss` is `true` by default, also for batch reads.\n"
    "- `maxBytesPerTrigger` is divided among topics by backlog.\n"
    "- `maxRowsPerTrigger`, `minPartitions` and `columns` are new.\n"
)
"""Section of the page about the source."""


_ACCESS_AND_LOSS = (
    "\n## Tokens and TLS\n\n"
    "They apply to the binary protocol and the admin API. A redirect of the admin API passes\n"
    "the credentials on, but not from `https` to `http`. A permanent error ends a query at\n"
    "once: refused credentials (401, 403, AuthenticationError), an untrusted certificate. No\n"
    "error, log or checkpoint of the source contains a secret; `file:` and `env:` also keep\n"
    "it out of Spark's plans and options. [Connect to a secured\n"
    "broker](../guide/clients.md#spark) has examples.\n"
    "\n## Unreachable brokers\n\n"
    "Every wait has a limit. A request to the admin API ends within `adminTimeoutMs`, an\n"
    "operation of the client within `operationTimeoutMs`. A running stream treats an admin\n"
    "API that does not answer as unchanged, and a task waits for its broker, each for\n"
    "`pollTimeoutMs`. Nothing is lost or read twice: offsets are in the checkpoint, and each\n"
    "row is taken once.\n"
    "\n## Lost messages\n\n"
    "The source makes no subscription, so a topic must retain its messages. A start whose\n"
    "ledger was trimmed, a missing partition, and a topic that differs from the one in the\n"
    "checkpoint are lost data: `failOnDataLoss` decides. A topic differs if it cannot have\n"
    "had the position in the checkpoint, because its message ids began anew, as after the\n"
    "loss of a broker's data directory; the source then reads it from its first message. Ids\n"
    "cannot show this once the new topic has an entry at that position: earlier entries are\n"
    "then not read.\n\n"
    "A broker moves a reader beyond messages that expired: Pulsar does with the message TTL of a\n"
    "topic, and both do if somebody who may consume expires or skips the messages of its\n"
    "subscription. The topic may retain them. So a task asks for them again where 32 entries or\n"
    "more did not come, and reads them. If fewer did not come, they are lost data. If nothing\n"
    "comes behind them, a task does so after half of `pollTimeoutMs`.\n"
)
"""Sections of the page about the source."""


def source_page() -> str:
    """The options and columns of the Spark source."""
    types = {field.name: field.dataType.simpleString() for field in spark_schema(COLUMNS).fields}
    return (
        _NOTE.format("src/pyspark_pulsar/options.py") + '# The Spark source, `format("pulsar")`\n\n'
        'This page lists the options and columns of `format("pulsar")` for `spark.read` and\n'
        "`spark.readStream`. The case of option names does not matter; the source refuses an\n"
        "option that is unknown or has no effect on the kind of query. Topics without a tenant\n"
        "are in `public/default`. A message id is `ledger:entry:partition:batch index`; without\n"
        "a batch index it means the whole entry.\n\n"
        + table(
            ("option", "default", "allowed", "for", "meaning"),
            [(f"`{o.name}`", o.default, o.allowed, o.queries, o.meaning) for o in OPTIONS],
        )
        + _ACCESS_AND_LOSS
        + "\n## Columns\n\n"
        + table(
            ("column", "type", "meaning"),
            [(f"`{name}`", types[name], COLUMN_MEANINGS[name]) for name in COLUMNS],
        )
        + "\n## Keys\n\n"
        "Java's `keyBytes` and the keys of separated `KeyValue` schemas travel as base64, and\n"
        "`__key` holds the bytes. An empty key is empty, and null means that there is none.\n"
        + "\n## Publish times\n\n"
        "Producers set publish times by their own clocks, before they send, so messages of a\n"
        "topic are not in that order. A batch reads from the broker's position for\n"
        "`startingTime` less `publishTimeSkewMs` to that for `endingTime` plus as much, and\n"
        "checks each message. So both ends are exact while the clocks of all producers and of\n"
        "the broker differ by no more, including the wait of a message before it was stored: a\n"
        "producer's retries, replication. If a clock is further ahead, its messages may be\n"
        "missing behind `startingTime`; if it is further behind, before `endingTime`. A stream\n"
        "begins at the first of these positions. A task that finds publish times further out of\n"
        "order logs a warning with the difference.\n\n"
        "Each end costs the reading of as much more. An `endingTime` less than\n"
        "`publishTimeSkewMs` ago is not searched for: the source reads the topic to its end. Nor\n"
        "is either time if `publishTimeSkewMs` is longer than the time since 1970, such as\n"
        "9223372036854775: the whole topic is then read, and both ends are exact with any\n"
        "clocks.\n" + "\n## Chunked messages\n\n"
        "A message that its producer sent in chunks is one row, of the batch or task whose range\n"
        "holds its last chunk, for any division into ranges. If it begins before that range, the\n"
        "task reads entries before it once more, and takes the chunks of that message alone: at\n"
        f"first {ENTRIES_BEFORE_FIRST:,} entries and one for each missing chunk, then\n"
        f"{ENTRIES_BEFORE_MAX:,}; after {SEARCHED_MAX:,} entries in all such searches of a task,\n"
        f"the first ones alone, and for at most {ENTRIES_BEFORE_FIRST:,} missing chunks. A task\n"
        f"searches for {SEARCHES_MAX:,} messages. Of two messages with the same id it takes the\n"
        "last one. Chunks that a producer sends again behind the message are no second row.\n"
        "`failOnDataLoss` decides about a message of which a chunk is lost, or is further away.\n"
        + "\n## Encrypted messages\n\n"
        "The source has no keys, so it cannot read messages that producers encrypted. The\n"
        "query fails at the first one, and names it. With `failOnDataLoss=false` it leaves them\n"
        "out, and the log of the task says how many.\n"
        + _MALFORMED_MESSAGES
        + _TRANSACTIONS
        + _OTHER_THAN_JVM
    )


if __name__ == "__main__":
    raise SystemExit(write_or_check(__doc__, pages))
