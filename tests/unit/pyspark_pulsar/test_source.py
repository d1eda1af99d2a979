"""The source's classes without Spark's engine: planning against a scripted admin service."""

from __future__ import annotations

import json
import pickle
from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate, count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

import pyspark_pulsar
from pyspark_pulsar import source
from pyspark_pulsar.admin import AdminClient, Response
from pyspark_pulsar.errors import (
    DataLossError,
    OptionsError,
    TopicNotFoundError,
    UnreachableError,
)
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.ranges import LedgerSpan, TopicSnapshot
from pyspark_pulsar.source import DefaultSource, PulsarReader, PulsarStreamReader
from tests.unit.pyspark_pulsar.fakes import FakeAdmin, held

T = "persistent://public/default/t"
REQUIRED = {"service.url": "pulsar://h:1", "admin.url": "http://h:2", "topic": "t"}


def stream(admin: FakeAdmin, **options: str) -> PulsarStreamReader:
    made = DefaultSource(REQUIRED | options)
    reader = made.streamReader(made.schema())
    assert isinstance(reader, PulsarStreamReader)
    reader._admin_client = admin  # type: ignore[assignment]
    return reader


def batch(admin: FakeAdmin, **options: str) -> PulsarReader:
    made = DefaultSource(REQUIRED | options)
    reader = made.reader(made.schema())
    assert isinstance(reader, PulsarReader)
    reader._admin_client = admin  # type: ignore[assignment]
    return reader


def offset(**places: str) -> dict[str, Any]:
    return {"v": 1, "t": {f"persistent://public/default/{k}": v for k, v in places.items()}}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "IDLE_POLL_S", 0.0)


def test_spark_finds_it_by_name() -> None:
    assert pyspark_pulsar.DefaultSource.name() == "pulsar"


def test_options_are_checked_for_batch_or_stream() -> None:
    with pytest.raises(OptionsError, match="maxRowsPerTrigger"):
        batch(FakeAdmin({}), maxRowsPerTrigger="5")
    with pytest.raises(OptionsError, match="endingOffsets"):
        stream(FakeAdmin({}), endingOffsets="latest")


def test_a_batch_reads_from_earliest_to_latest() -> None:
    (task,) = batch(FakeAdmin({T: held((3, 6))})).partitions()
    assert (task.value.start, task.value.end) == (Position(-1, -1), Position(3, 5))


def test_a_search_by_time_is_widened_by_the_skew() -> None:
    admin = FakeAdmin({T: held((3, 2_000))})
    times = {"startingTime": "700000", "endingTime": "900000"}
    (task,) = batch(admin, **times).partitions()
    assert (task.value.start, task.value.end) == (Position(3, 100), Position(3, 1_500))
    (task,) = batch(admin, publishTimeSkewMs="1000", **times).partitions()
    assert (task.value.start, task.value.end) == (Position(3, 699), Position(3, 901))


def test_times_outside_the_topic_read_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search, which clocks could mislead: to the end where that is no longer ago than asked."""
    admin = FakeAdmin({T: held((3, 2_000))})
    times = {"startingTime": "600000", "endingTime": "900000"}
    monkeypatch.setattr(source.time, "time", lambda: 1_500.0)
    (task,) = batch(admin, **times).partitions()
    assert (task.value.start, task.value.end) == (Position(-1, -1), Position(3, 1_999))
    monkeypatch.setattr(source.time, "time", lambda: 1_501.0)
    (task,) = batch(admin, **times).partitions()
    assert task.value.end == Position(3, 1_500)
    (task,) = batch(admin, publishTimeSkewMs="9223372036854775", **times).partitions()
    assert (task.value.start, task.value.end) == (Position(-1, -1), Position(3, 1_999))


class Clocks(FakeAdmin):
    """A topic whose entry n was stored at second n, with producers' clocks off by ``skews_s``."""

    def __init__(self, skews_s: list[int], *, runs_backwards: bool) -> None:
        super().__init__({T: held((3, len(skews_s)))})
        self.published_s = [second + skew_s for second, skew_s in enumerate(skews_s)]
        self.runs_backwards = runs_backwards

    def positions_at(self, names: list[str], publish_ms: int) -> dict[str, Position]:
        """As Pulsar, which searches what the producers said as if it were in order, or as Headgate,
        in which no entry is dated after it was stored or before the entry in front of it."""
        times_s = self.published_s
        if not self.runs_backwards:
            times_s = list(accumulate(map(min, times_s, count()), max))
        return {name: Position(3, bisect_left(times_s, publish_ms / 1_000) - 1) for name in names}


@given(
    st.lists(st.integers(-80, 40), min_size=300, max_size=300),
    st.integers(1, 300),
    st.integers(0, 100),
    st.booleans(),
)
def test_no_message_is_missed_within_the_stated_clock_skew(
    skews_s: list[int], since_s: int, length_s: int, runs_backwards: bool
) -> None:
    admin = Clocks(skews_s, runs_backwards=runs_backwards)
    until_s = since_s + length_s
    times = {"startingTime": f"{since_s}000", "endingTime": f"{until_s}000"}
    tasks = batch(admin, publishTimeSkewMs="120000", **times).partitions()
    planned = {
        entry for task in tasks for due in task.value.due
        for entry in range(due.first_entry, due.last_entry + 1)
    }  # fmt: skip
    assert planned >= {
        entry for entry, each in enumerate(admin.published_s) if since_s <= each < until_s
    }


@pytest.mark.parametrize("skew_s", [120, -120])
def test_one_producer_two_minutes_off_loses_nothing(skew_s: int) -> None:
    admin = Clocks([0, skew_s] * 1_500, runs_backwards=False)
    (task,) = batch(admin, startingTime="1000000", endingTime="1100000").partitions()
    read = admin.published_s[task.value.start.entry_id + 1 : task.value.end.entry_id + 1]
    assert sum(1_000 <= each < 1_100 for each in read) == 100
    assert len(read) < 1_400, "so much further, and no more"


def test_a_missing_topic_is_named() -> None:
    with pytest.raises(TopicNotFoundError, match=f"{T} does not exist"):
        batch(FakeAdmin({T: None})).partitions()


def test_the_empty_task_reads_nothing() -> None:
    assert list(batch(FakeAdmin({})).read(InputPartition(None))) == []


def test_pickled_readers_have_no_connections() -> None:
    reader = pickle.loads(pickle.dumps(stream(FakeAdmin({}))))
    assert reader._admin_client is None


def test_a_stream_starts_at_latest_or_at_its_option() -> None:
    admin = FakeAdmin({T: held((3, 6))})
    assert stream(admin).initialOffset() == offset(t="3:5:-1:-1")
    assert stream(admin, startingOffsets="earliest").initialOffset() == offset(t="-1:-1:-1:-1")
    admin.held[T] = held((3, 600))
    for since_s, begin in ((100, "3:70"), (900, "3:599"), (20, "-1:-1")):
        at = stream(admin, startingTime=f"{since_s}000", publishTimeSkewMs="30000")
        assert at.initialOffset() == offset(t=f"{begin}:-1:-1")


def planned(reader: PulsarStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    """The entries of one topic that a batch reads."""
    return [
        entry
        for task in reader.partitions(start, end)
        for due in task.value.due
        for entry in range(due.first_entry, due.last_entry + 1)
    ]


@pytest.mark.parametrize("option", [{}, {"startingOffsets": "latest"}, {"startingTime": "900000"}])
def test_a_start_at_the_end_holds_while_messages_arrive(option: dict[str, str]) -> None:
    """Spark asks for it, for the first end, and for it once more; each time more is there."""
    admin = FakeAdmin({T: held((3, 6))})
    reader = stream(admin, **option)
    start = reader.initialOffset()
    admin.held[T] = held((3, 8))
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == start == offset(t="3:5:-1:-1"), "the first batch fixes the start"
    admin.held[T] = held((3, 11))
    assert reader.initialOffset() == start, "the first answer is kept"
    assert planned(reader, reader.initialOffset(), end) == []
    following = reader.latestOffset(end, ReadAllAvailable())
    assert planned(reader, end, following) == [6, 7, 8, 9, 10]


def test_a_first_batch_that_is_planned_again_reads_nothing_and_loses_nothing() -> None:
    """Killed before its end was committed: only that end is in the checkpoint."""
    admin = FakeAdmin({T: held((3, 6))})
    first = stream(admin)
    end = first.latestOffset(first.initialOffset(), ReadAllAvailable())
    admin.held[T] = held((3, 9))
    again = stream(admin)
    assert planned(again, again.initialOffset(), end) == []
    assert planned(again, end, again.latestOffset(end, ReadAllAvailable())) == [6, 7, 8]


def test_a_first_batch_from_earliest_or_an_id_reads_all_messages() -> None:
    for text, expected in (("earliest", range(6)), (json.dumps({T: "3:4"}), range(4, 6))):
        reader = stream(FakeAdmin({T: held((3, 6))}), startingOffsets=text)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert planned(reader, start, end) == [*expected]


def test_a_stream_from_an_id_behind_an_open_transaction_begins_there() -> None:
    whole = held((3, 10))
    admin = FakeAdmin({T: replace(whole, last_published=(3, 2), last_stored=(3, 9))})
    reader = stream(admin, startingOffsets=json.dumps({T: "3:7"}))
    start = reader.initialOffset()
    assert start == offset(t="3:6:-1:-1")
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    admin.held[T] = whole
    assert planned(reader, start, reader.latestOffset(start, ReadAllAvailable())) == [7, 8, 9]


@pytest.mark.parametrize("text", ["3:10", "9:0"])
def test_a_start_behind_all_of_a_topic_is_fixed_by_the_first_batch(text: str) -> None:
    admin = FakeAdmin({T: replace(held((3, 10)), last_published=(3, 2), last_stored=(3, 9))})
    reader = stream(admin, startingOffsets=json.dumps({T: text}))
    start = reader.initialOffset()
    admin.held[T] = held((3, 12))
    assert start == reader.latestOffset(start, ReadAllAvailable()) == offset(t="3:9:-1:-1")
    assert planned(reader, start, reader.latestOffset(start, ReadAllAvailable())) == [10, 11]


def test_a_topic_recreated_after_the_first_batch_is_read_completely() -> None:
    admin = FakeAdmin({T: held((9, 6))})
    reader = stream(admin, failOnDataLoss="false")
    start = reader.initialOffset()
    assert planned(reader, start, reader.latestOffset(start, ReadAllAvailable())) == []
    admin.held[T] = held((3, 2))
    assert planned(reader, start, reader.latestOffset(start, ReadAllAvailable())) == [0, 1]


def test_spark_gets_the_read_limit() -> None:
    admin = FakeAdmin({})
    assert stream(admin).getDefaultReadLimit() == ReadAllAvailable()
    assert stream(admin, maxRowsPerTrigger="5").getDefaultReadLimit() == ReadMaxRows(5)
    assert stream(admin, maxBytesPerTrigger="5").getDefaultReadLimit() == ReadMaxBytes(5)


def test_limits_apply_unless_spark_requests_everything() -> None:
    reader = stream(FakeAdmin({T: held((3, 6))}), maxRowsPerTrigger="4", maxBytesPerTrigger="200")
    start = offset(t="3:0:-1:-1")
    assert reader.latestOffset(start, ReadMaxRows(4)) == offset(t="3:2:-1:-1")
    assert reader.latestOffset(start, ReadAllAvailable()) == offset(t="3:5:-1:-1")
    assert reader.reportLatestOffset() == offset(t="3:5:-1:-1")


def test_available_now_ends_at_the_end_found_at_its_start() -> None:
    admin = FakeAdmin({T: held((3, 6))})
    reader = stream(admin, maxRowsPerTrigger="4")
    reader.prepareForTriggerAvailableNow()
    admin.held[T] = held((3, 90))
    place = offset(t="-1:-1:-1:-1")
    seen = []
    while (following := reader.latestOffset(place, ReadMaxRows(4))) != place:
        seen.append(following["t"][T])
        place = following
    assert seen == ["3:3:-1:-1", "3:5:-1:-1"]


def test_an_offset_never_goes_back() -> None:
    start = offset(t="9:-1:-1:-1")
    for same in (TopicSnapshot((), None), TopicSnapshot((LedgerSpan(9, 0, 0),), None)):
        assert stream(FakeAdmin({T: same})).latestOffset(start, ReadAllAvailable()) == start
    trimmed = FakeAdmin({T: TopicSnapshot((LedgerSpan(12, 0, 0),), (8, 5))})
    assert stream(trimmed).latestOffset(start, ReadAllAvailable()) == offset(t="12:-1:-1:-1")


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(((3, 6),), id="its ids have not come so far again"),
        pytest.param(((2, 9), (12, 4)), id="they have, elsewhere"),
        pytest.param(((9, 4), (12, 0)), id="its ledger of that id is smaller"),
    ],
)
def test_a_topic_with_restarted_ids_is_another_topic(
    now: tuple[tuple[int, int], ...], caplog: pytest.LogCaptureFixture
) -> None:
    """As of a broker with a new data directory: each message of the new topic is read once."""
    admin, start = FakeAdmin({T: held(*now)}), offset(t="9:4:-1:-1")
    with pytest.raises(DataLossError, match="9:4:-1:-1, a position that it never had"):
        stream(admin).latestOffset(start, ReadAllAvailable())
    reader = stream(admin, failOnDataLoss="false", maxRowsPerTrigger="4")
    entries, warnings = [], []
    while (end := reader.latestOffset(start, ReadMaxRows(4))) != start:
        admitted = [
            (due.ledger_id, entry)
            for task in reader.partitions(start, end)
            for due in task.value.due
            for entry in range(due.first_entry, due.last_entry + 1)
        ]
        assert len(admitted) <= 4
        entries += admitted
        warnings.append(len(caplog.messages))
        start = end
    assert entries == [(ledger, entry) for ledger, count in now for entry in range(count)]
    assert set(warnings) == {1}
    assert "reads it from its first message" in caplog.messages[0]


def test_a_batch_planned_before_its_topic_was_recreated() -> None:
    """It has nothing, and what is there now comes with the next."""
    admin = FakeAdmin({T: held((3, 6))})
    reader = stream(admin, failOnDataLoss="false")
    assert reader.partitions(offset(t="9:4:-1:-1"), offset(t="9:8:-1:-1")) == []
    end = reader.latestOffset(offset(t="9:8:-1:-1"), ReadAllAvailable())
    assert end == offset(t="3:5:-1:-1")
    (task,) = stream(admin).partitions(offset(t="9:8:-1:-1"), end)
    assert (task.value.start, task.value.end) == (Position(-1, -1), Position(3, 5))


class Outage(FakeAdmin):
    """Does not answer so many times, and says how often it was asked."""

    def __init__(self, held: dict[str, TopicSnapshot | None], times: int) -> None:
        super().__init__(held)
        self.times = times

    def partitions_if_any(self, topics: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        if self.times:
            self.times -= 1
            raise UnreachableError("no answer")
        return super().partitions_if_any(topics)


def test_a_stream_waits_for_an_unreachable_cluster(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = [0.0]

    def later() -> float:
        now_s[0] += 10.0
        return now_s[0]

    monkeypatch.setattr(source.time, "monotonic", later)
    monkeypatch.setattr(source.time, "sleep", lambda _: None)
    start = offset(t="3:0:-1:-1")
    reader = stream(Outage({T: held((3, 6))}, 2))
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert reader.latestOffset(start, ReadAllAvailable()) == offset(t="3:5:-1:-1")
    assert caplog.messages == ["no answer; the stream waits and retries"] * 2
    given_up = stream(Outage({T: held((3, 6))}, 1_000), pollTimeoutMs="100000")
    ends = (given_up.latestOffset(start, ReadAllAvailable()) for _ in range(1_000))
    with pytest.raises(UnreachableError):
        set(map(json.dumps, ends))


def test_an_available_now_run_waits_for_an_unreachable_cluster() -> None:
    admin = Outage({T: held((3, 6))}, 0)
    reader = stream(admin)
    reader.prepareForTriggerAvailableNow()
    admin.times = 3
    assert reader.latestOffset(offset(t="3:0:-1:-1"), ReadAllAvailable()) == offset(t="3:5:-1:-1")
    assert admin.times == 0


def test_a_deleted_partition_is_a_loss() -> None:
    admin = FakeAdmin({T: held((3, 6))})
    start = offset(t="3:5:-1:-1", u="4:4:-1:-1")
    with pytest.raises(DataLossError, match="default/u no longer exists"):
        stream(admin).latestOffset(start, ReadAllAvailable())
    going_on = stream(admin, failOnDataLoss="false")
    assert going_on.latestOffset(start, ReadAllAvailable()) == offset(t="3:5:-1:-1")


def over_http(reader: PulsarStreamReader, topics: set[str]) -> PulsarStreamReader:
    """``reader`` with the real admin client, of a cluster that has ``topics``, each with 6 entries
    in ledger 3."""

    def transport(url: str, _timeout_s: float) -> Response:
        if "/admin/v3/transactions/" in url:
            return Response(503, b'{"reason": "without transactionCoordinatorEnabled=true"}')
        topic, _, question = url.partition("/persistent/public/default/")[2].partition("/")
        if topic not in topics:
            return Response(404, b'{"reason": "Topic not found"}')
        answer = {
            "partitions": {"partitions": 0},
            "lastMessageId": {"ledgerId": 3, "entryId": 5},
            "internalStats": {
                "ledgers": [{"ledgerId": 3, "entries": 0, "size": 0}],
                "currentLedgerEntries": 6,
                "currentLedgerSize": 600,
            },
        }
        return Response(200, json.dumps(answer.get(question, {})).encode())

    reader._admin_client = AdminClient(reader._options.connection, transport)
    return reader


def stream_of_two(topics: set[str], **options: str) -> PulsarStreamReader:
    made = DefaultSource(
        {"service.url": "pulsar://h:1", "admin.url": "http://h:2", "topics": "t,u"} | options
    )
    reader = made.streamReader(made.schema())
    assert isinstance(reader, PulsarStreamReader)
    return over_http(reader, topics)


def test_a_deleted_topic_is_a_loss_or_is_skipped() -> None:
    start = offset(t="3:2:-1:-1", u="3:2:-1:-1")
    for fixes_end in (False, True):
        there = {"t", "u"}
        reader = stream_of_two(there, failOnDataLoss="false")
        assert reader.latestOffset(start, ReadAllAvailable()) == offset(
            t="3:5:-1:-1", u="3:5:-1:-1"
        )
        there.remove("u")
        if fixes_end:
            reader.prepareForTriggerAvailableNow()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert end == offset(t="3:5:-1:-1")
        assert [task.value.topic for task in reader.partitions(start, end)] == [T]
        assert reader.latestOffset(end, ReadAllAvailable()) == end
        restarted = stream_of_two(there, failOnDataLoss="false")
        assert restarted.latestOffset(end, ReadAllAvailable()) == end
    with pytest.raises(DataLossError, match="default/u no longer exists"):
        stream_of_two({"t"}).latestOffset(start, ReadAllAvailable())


def test_a_topic_that_never_existed_is_named() -> None:
    with pytest.raises(TopicNotFoundError, match="default/u does not exist"):
        stream_of_two({"t"}).latestOffset(offset(t="3:2:-1:-1"), ReadAllAvailable())
    with pytest.raises(TopicNotFoundError, match="default/u does not exist"):
        stream_of_two({"t"}, failOnDataLoss="false").initialOffset()


@pytest.mark.parametrize("read", [{"t": "3:0:-1:-1", "u": "3:0:-1:-1"}, {"t": "3:0:-1:-1"}])
def test_a_deletion_during_an_available_now_run_is_a_loss_or_is_skipped(
    read: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    limit = ReadMaxRows(2)
    for fail in ("false", "true"):
        there = {"t", "u"}
        reader = stream_of_two(there, failOnDataLoss=fail, maxRowsPerTrigger="2")
        reader.prepareForTriggerAvailableNow()
        there.remove("u")
        if fail == "true":
            with pytest.raises(DataLossError, match="default/u no longer exists"):
                reader.latestOffset(offset(**read), limit)
            continue
        seen = [offset(**read)]
        while len(seen) == 1 or seen[-1] != seen[-2]:
            seen.append(reader.latestOffset(seen[-1], limit))
        assert [each["t"] for each in seen[1:]] == [
            {T: place} for place in ("3:2:-1:-1", "3:4:-1:-1", "3:5:-1:-1", "3:5:-1:-1")
        ]
        assert len(caplog.messages) == 1


def test_tasks_of_a_batch_reuse_its_responses() -> None:
    admin = FakeAdmin({T: held((3, 6))})
    reader = stream(admin)
    start = offset(t="3:0:-1:-1")
    end = reader.latestOffset(start, ReadAllAvailable())
    (task,) = reader.partitions(start, end)
    assert (task.value.start, task.value.end) == (Position(3, 0), Position(3, 5))
    assert admin.rounds == 1
    assert reader.partitions(end, end) == []


def test_tasks_of_a_former_runs_batch_send_requests() -> None:
    admin = FakeAdmin({T: held((4, 6))})
    with pytest.raises(DataLossError, match="oldest ledger it still holds is 4"):
        stream(admin).partitions(offset(t="3:0:-1:-1"), offset(t="4:2:-1:-1"))
    assert admin.rounds == 1


def test_equal_positions_have_equal_offset_texts() -> None:
    admin = FakeAdmin({f"{T}-partition-{index}": held((3, 6)) for index in (1, 0)})
    reader = stream(admin)
    first = reader.initialOffset()
    assert json.dumps(first) == json.dumps(reader.latestOffset(first, ReadAllAvailable()))
    assert list(first["t"]) == [f"{T}-partition-0", f"{T}-partition-1"]
