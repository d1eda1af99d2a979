"""Bronze rows between two scrapes, one stream for each subject."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headgate.pipeline.scrapes.pairs import ScrapePair
from headgate.pipeline.scrapes.reading import read_scrape
from headgate.pipeline.scrapes.rows import batch_rows, pair_rows, scrape_source
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from tests.unit.pipeline.scrapes.texts import CLUSTER, SITUATIONS, STEP_S, T0_MS, text_of

BEFORE_NS = T0_MS * 1_000_000
AFTER_NS = BEFORE_NS + STEP_S * 10**9


def rows() -> pa.Table:
    before, after = (read_scrape(text_of(at).splitlines()) for at in (0, STEP_S))
    after.broker["started_s"] = 1.7e9
    return pa.concat_tables(pair_rows(ScrapePair("b1", before, after, BEFORE_NS, AFTER_NS)))


def test_every_subject_has_a_row_at_each_end() -> None:
    found = rows()
    assert found.schema.equals(table_arrow_schema(BRONZE_SAMPLES))
    assert found.num_rows == 4 * len(SITUATIONS)
    keys = ["kind", "topic", "subscription", "covered_to_ns", "seq"]
    assert found.group_by(keys).aggregate([]).num_rows == found.num_rows
    for name, value in {
        "source": "scrape:b1",
        "broker": "b1",
        "cluster": CLUSTER,
        "boot_id": f"1700000000@{T0_MS}",
        "incarnation": 0,
        "window_start_ns": BEFORE_NS,
        "window_end_ns": AFTER_NS,
        "covered_from_ns": BEFORE_NS,
        "counting_since_ns": None,
        "evidence": "inferred",
        "hour": 10,
    }.items():
        assert found[name].unique().to_pylist() == [value], name
    assert set(found["covered_to_ns"].to_pylist()) == {BEFORE_NS, AFTER_NS}


def test_series_that_a_cluster_does_not_expose_are_null() -> None:
    found = rows()
    for name in ("backlog_bytes", "permits", "limit_topic_messages", "type", "quota_size_policy"):
        subscriptions = found.filter(pa.compute.equal(found["kind"], "subscription"))
        assert subscriptions[name].null_count == subscriptions.num_rows, name


def test_a_scrape_is_a_batch() -> None:
    (row,) = batch_rows("b1", read_scrape(text_of(0).splitlines()), BEFORE_NS).to_pylist()
    assert (row["kind"], row["source"]) == ("batch", scrape_source("b1"))
    assert (row["seq"], row["boot_id"], row["cluster"]) == (T0_MS, f"@{T0_MS}", CLUSTER)
    assert row["window_start_ns"] == row["window_end_ns"] == BEFORE_NS


def test_numbers_and_names_of_one_topic_do_not_keep_others_from_being_read() -> None:
    """Whoever may produce creates a topic that looks like partition 10^20, and brokers may tell any
    number."""
    odd = f"persistent://t/n/a-partition-{'9' * 20}"

    def lines(count: int) -> Iterator[str]:
        for topic, backlog, rate in ((odd, "9.9e17", "1e300"), ("persistent://t/n/b", "3", "1")):
            label = f'cluster="c",topic="{topic}"'
            yield f"pulsar_in_messages_total{{{label}}} {count}"
            yield f"pulsar_rate_in{{{label}}} {rate}"
            yield f"pulsar_storage_write_rate{{{label}}} 1e-300"
            yield f'pulsar_subscription_back_log{{{label},subscription="s"}} {backlog}'

    before, after = read_scrape(lines(1)), read_scrape(lines(9))
    found = pa.concat_tables(pair_rows(ScrapePair("b1", before, after, BEFORE_NS, AFTER_NS)))
    assert set(found["topic"].to_pylist()) == {odd, "persistent://t/n/b"}
    assert found["partition"].null_count == found.num_rows == 8
    other = found.filter(pa.compute.equal(found["topic"], "persistent://t/n/b"))
    assert set(other["msgs_in"].drop_null().to_pylist()) == {0, 8}
