"""Options of reads are checked before anything is read, each fault in one sentence."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.source.options import OPTIONS, parse_options, reads_changes
from headgate.pipeline.tables.intervals import INTERVALS

NOW = 1_763_719_200 * 10**9
GIVEN = {"path": "/tables", "table": "intervals"}


def test_defaults() -> None:
    options = parse_options(GIVEN, NOW)
    assert (options.root, options.table) == ("/tables", INTERVALS)
    assert options.columns == INTERVALS.column_names()
    assert (options.version, options.at_ns, options.partitions_min) == (None, None, 1)


def test_names_in_any_case_and_columns_in_the_table_s_order() -> None:
    given = GIVEN | {"VERSIONASOF": " 3 ", "columns": "topic, minute", "minpartitions": "7"}
    options = parse_options(given, NOW)
    assert (options.version, options.columns, options.partitions_min) == (
        3,
        ("minute", "topic"),
        7,
    )
    assert parse_options(GIVEN | {"timestampAsOf": "2h"}, NOW).at_ns == NOW - 7_200 * 10**9


def test_options_of_a_stream() -> None:
    given = GIVEN | {"readChangeFeed": "TRUE", "startingFrom": "latest", "delayMinutes": "0"}
    options = parse_options(given, NOW)
    assert (options.starts_latest, options.delay_minutes) == (True, 0)
    assert reads_changes(given)
    assert not reads_changes(GIVEN)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"table": "nothing"}, "option table='nothing' is no table: bronze_samples, "),
        ({"table": "interval"}, "did you mean intervals?"),
        ({"table": "namespace_rollup"}, "is a view and no table"),
        ({"path": "hdfs://x/y"}, "tables cannot be in hdfs://"),
        ({"columns": "topic,msg_in"}, "intervals has no column 'msg_in'; did you mean msgs_in?"),
        ({"columns": "topic,topic"}, "names a column twice; once is allowed"),
        ({"versionAsOf": "-1"}, "option versionAsOf='-1': a whole number from 0 to"),
        ({"versionAsOf": "1", "timestampAsOf": "1h"}, "exclude each other"),
        ({"timestampAsOf": "2025-11-21 10:00"}, "option timestampAsOf '2025-11-21 10:00' has no"),
        ({"minPartitions": "0"}, "option minPartitions='0': a whole number from 1 to 100000"),
        ({"verionAsOf": "1"}, "unknown option verionAsOf; did you mean versionAsOf?"),
        ({"kinds": "topics"}, "option kinds='topics': subscription, topic, limiter are allowed"),
        ({"table": "episodes", "kinds": "topic"}, "episodes has no column kind; leave the option"),
        ({"since": "soon"}, "option since 'soon' is no time"),
        ({"since": "1h", "until": "2h"}, "option since does not lie before option until"),
        ({"pushFilters": "1"}, "option pushFilters='1': true or false is allowed"),
        ({"startingFrom": "latest"}, "option startingFrom is for stream reads only"),
        ({"readChangeFeed": "yes"}, "option readChangeFeed='yes': true or false is allowed"),
        ({"readChangeFeed": "true", "versionAsOf": "1"}, "versionAsOf is for batch reads only"),
        ({"readChangeFeed": "true", "startingFrom": "now"}, "earliest or latest is allowed"),
        ({"readChangeFeed": "true", "table": "episodes"}, "cannot be streamed by minutes: inter"),
    ],
)
def test_faults_name_option_value_and_what_is_allowed(given: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_options(GIVEN | given, NOW)
    assert said in str(error.value)
    assert str(error.value).count("\n") == 0


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(InputError) as error:
        parse_options({"versionAsOf": "x"}, NOW)
    assert str(error.value).split("\n") == [
        "option versionAsOf='x': a whole number from 0 to 9223372036854775807 is allowed",
        "option path is required",
        "option table is required",
    ]


def test_each_option_is_described() -> None:
    assert len({option.name.lower() for option in OPTIONS}) == len(OPTIONS)
    assert all(option.meaning.endswith(".") and option.allowed for option in OPTIONS)
