"""Rows of the telemetry from figures: what each covers, and what happens to clocks and subjects."""

from __future__ import annotations

from typing import Any

from headgate.agent import records
from headgate.agent.figures import SubjectFigures
from headgate.agent.records import Instants, Record, RecordWindows
from headgate.base.units import INT64_MAX
from headgate.record.codec import Batch, decode
from headgate.record.fields import COUNT_MAX, Kind
from tests.unit.agent.figures import TOPIC, WALL, S, subscription, topic


def windows(start_s: int = 0) -> RecordWindows:
    return RecordWindows("agent:prod", "prod", "boot-1", at(start_s))


def at(second: int, step_ns: int = 0) -> Instants:
    return Instants(WALL + second * S + step_ns, second * S)


def stored(made: RecordWindows, figures: Any, end: Instants) -> list[Record]:
    """The messages of a window that is stored."""
    found = list(made.window(figures, end))
    made.commit()
    return found


def decoded(found: list[Record]) -> list[Batch]:
    return [decode(each.data) for each in found]


def rows(batches: list[Batch], kind: Kind = Kind.SUBSCRIPTION) -> list[dict[str, Any]]:
    found = []
    for batch in batches:
        columns = batch.columns.get(kind, {})
        for place in range(batch.rows.get(kind, 0)):
            found.append({name: values[place] for name, values in columns.items()})
    return found


def test_counting_begins_with_the_first_row_and_rows_cover_the_time_between_looks() -> None:
    made = windows()
    found = []
    for minute in (1, 2, 3):
        looked_s = 60 * minute - 10
        figures = [subscription(looked_s), topic(looked_s + 2)]
        found.append(decoded(stored(made, figures, at(60 * minute))))
    (one,), (two,), (three,) = (rows(each) for each in found)
    assert one["covered_from_ns"] == one["covered_to_ns"] == WALL + 50 * S
    assert (two["covered_from_ns"], two["covered_to_ns"]) == (WALL + 50 * S, WALL + 110 * S)
    assert (three["covered_from_ns"], three["covered_to_ns"]) == (WALL + 110 * S, WALL + 170 * S)
    assert {each["counting_since_ns"] for each in (one, two, three)} == {WALL + 50 * S}
    assert [each["state_no_consumer_ns"] for each in (one, two, three)] == [0, 60 * S, 120 * S]
    assert [each["appended"] for each in (one, two, three)] == [0, 6_000, 12_000]
    assert [each["backlog_messages"] for each in (one, two, three)] == [5_000, 11_000, 17_000]
    assert (two["topic"], two.get("partition"), two["subscription"]) == (TOPIC, None, "billing")
    assert two.get("state") is None
    assert rows(found[1], Kind.TOPIC)[0]["msgs_in"] == 6_000
    # The header reaches back to the first look, so no reader fills time in before it.
    (batch,) = found[1]
    assert batch.header.window_start_ns == WALL + 50 * S
    assert batch.header.window_end_ns == WALL + 120 * S
    assert (batch.header.is_inferred, batch.header.source) == (True, "agent:prod")
    assert [each.seq for batches in found for each in batches] == [0, 1, 2]


def test_a_number_that_no_record_can_have_keeps_no_other_topic_from_its_row() -> None:
    figures = [
        topic(
            50, name="persistent://acme/orders/odd", oldest_age_ns=10**22, backlog_bytes=-(10**22)
        ),
        topic(50),
    ]
    found = rows(decoded(stored(windows(), figures, at(60))), Kind.TOPIC)
    assert {each["topic"] for each in found} == {"persistent://acme/orders/odd", TOPIC}
    (odd,) = (each for each in found if each["topic"] != TOPIC)
    assert (odd["oldest_age_ns"], odd["backlog_bytes"]) == (INT64_MAX, -INT64_MAX)


def test_a_count_that_readers_refuse_keeps_no_other_topic_from_its_row() -> None:
    """Readers refuse the whole message of a count beyond the bound."""
    made = windows()
    stored(made, [subscription(50, skipped=0)], at(60))
    (row,) = rows(decoded(stored(made, [subscription(110, skipped=1 << 60)], at(120))))
    assert row["skipped"] == COUNT_MAX


def test_a_subject_without_a_new_look_has_no_row() -> None:
    made = windows()
    stored(made, [subscription(50)], at(60))
    (batch,) = decoded(stored(made, [subscription(50)], at(120)))
    assert batch.rows == {}
    (row,) = rows(decoded(stored(made, [subscription(170)], at(180))))
    assert row["covered_from_ns"] == WALL + 50 * S
    assert row["appended"] == 12_000


def test_counting_that_began_anew_is_another_stream() -> None:
    made = windows()
    stored(made, [subscription(50)], at(60))
    (row,) = rows(decoded(stored(made, [subscription(110, since_s=70)], at(120))))
    assert row["counting_since_ns"] == row["covered_from_ns"] == WALL + 110 * S
    stored(made, [], at(180))  # the history forgot it
    (row,) = rows(decoded(stored(made, [subscription(230, since_s=70)], at(240))))
    assert row["counting_since_ns"] == WALL + 230 * S
    (row,) = rows(decoded(stored(made, [subscription(290, since_s=70, acked=5)], at(300))))
    assert (row["acked"], row["covered_from_ns"]) == (5, WALL + 230 * S)
    # A value that fell begins anew, too.
    (row,) = rows(decoded(stored(made, [subscription(350, since_s=70, acked=4)], at(360))))
    assert (row["acked"], row["counting_since_ns"]) == (0, WALL + 350 * S)


def test_a_count_that_is_known_later_counts_from_then_on() -> None:
    made = windows()
    stored(made, [subscription(50, acked=None)], at(60))
    (row,) = rows(decoded(stored(made, [subscription(110, acked=70)], at(120))))
    assert row["acked"] == 0
    (row,) = rows(decoded(stored(made, [subscription(170, acked=90)], at(180))))
    assert row["acked"] == 20


def test_each_broker_has_its_own_messages() -> None:
    figures = [
        subscription(50, owner="b1:8080"),
        subscription(50, owner="b2:8080", topic=f"{TOPIC}-partition-3"),
    ]
    batches = decoded(list(windows().window(figures, at(60))))
    assert [(each.header.broker, each.seq) for each in batches] == [("b1:8080", 0), ("b2:8080", 1)]
    (row,) = rows(batches[1:])
    assert (row["topic"], row["partition"]) == (TOPIC, 3)


def test_a_stepped_wall_clock_is_told_and_rows_go_on() -> None:
    made = windows()
    stored(made, [subscription(50)], at(60))
    (batch,) = decoded(stored(made, [subscription(110)], at(120, step_ns=-3_600 * S)))
    assert batch.header.clock_step
    assert batch.header.window_start_ns <= batch.header.window_end_ns
    (row,) = rows([batch])
    assert row["covered_from_ns"] <= row["covered_to_ns"] == WALL + (110 - 3_600) * S
    assert row["counting_since_ns"] <= row["covered_from_ns"]
    (batch,) = decoded(stored(made, [subscription(170)], at(180, step_ns=-3_600 * S)))
    assert not batch.header.clock_step


def test_many_rows_are_several_messages(monkeypatch: Any) -> None:
    monkeypatch.setattr(records, "ROWS_ENCODED", 10)
    figures = [subscription(50, name=f"s{n}") for n in range(25)]
    found = list(windows().window(figures, at(60)))
    assert [each.seq for each in found] == [0, 1, 2]
    assert [row["subscription"] for row in rows(decoded(found))] == [f"s{n}" for n in range(25)]


def test_unknown_values_are_null_and_fields_of_no_record_are_left_out() -> None:
    figures = [subscription(50, permits=None, looks=7), subscription(50, name="other")]
    first, second = rows(decoded(list(windows().window(figures, at(60)))))
    assert (first["permits"], second["permits"]) == (None, 0)
    assert "looks" not in first


def test_a_look_after_the_windows_end_is_cut_to_it() -> None:
    (row,) = rows(decoded(list(windows().window([subscription(61)], at(60)))))
    assert row["covered_to_ns"] == WALL + 60 * S


def test_figures_are_read_as_they_come() -> None:
    def figures() -> Any:
        yield subscription(50)
        yield SubjectFigures(TOPIC, None, 0, 50 * S, "b1:8080", {})

    (batch,) = decoded(list(windows().window(figures(), at(60))))
    assert batch.rows == {Kind.SUBSCRIPTION: 1, Kind.TOPIC: 1}


def test_a_window_that_is_not_stored_costs_no_time_and_no_amounts() -> None:
    made = windows()
    stored(made, [subscription(50)], at(60))
    lost = list(made.window([subscription(110), topic(110)], at(120)))
    (row,) = rows(decoded(lost))
    assert row["covered_from_ns"] == WALL + 50 * S
    again = stored(made, [subscription(170), topic(170)], at(180))
    (row,) = rows(decoded(again))
    assert (row["covered_from_ns"], row["covered_to_ns"]) == (WALL + 50 * S, WALL + 170 * S)
    assert (row["appended"], row["state_no_consumer_ns"]) == (12_000, 120 * S)
    # Nothing of the lost one is anywhere, so its numbers are free.
    assert [each.seq for each in again] == [each.seq for each in lost] == [1]
    assert again[0].header.window_start_ns == WALL + 50 * S
    (topic_row,) = rows(decoded(again), Kind.TOPIC)
    assert topic_row["covered_from_ns"] == topic_row["covered_to_ns"] == WALL + 170 * S


def test_a_step_of_the_clock_is_told_by_the_window_that_is_stored() -> None:
    made = windows()
    stored(made, [subscription(50)], at(60))
    list(made.window([subscription(110)], at(120, step_ns=3_600 * S)))
    (batch,) = decoded(stored(made, [subscription(170)], at(180, step_ns=3_600 * S)))
    assert batch.header.clock_step
    (batch,) = decoded(stored(made, [subscription(230)], at(240, step_ns=3_600 * S)))
    assert not batch.header.clock_step
