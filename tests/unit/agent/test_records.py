"""Rows of the telemetry from figures: what each covers, and what happens to clocks and subjects."""

from __future__ import annotations

from typing import Any

from headgate.agent import records
from headgate.agent.figures import SubjectFigures
from headgate.agent.records import Instants, Record, RecordWindows
from headgate.record.codec import Batch, decode
from headgate.record.fields import Kind
from tests.unit.agent.figures import TOPIC, WALL, S, subscription, topic


def windows(start_s: int = 0) -> RecordWindows:
    return RecordWindows("agent:prod", "prod", "boot-1", at(start_s))


def at(second: int, step_ns: int = 0) -> Instants:
    return Instants(WALL + second * S + step_ns, second * S)


def decoded(found: list[Record]) -> list[Batch]:
    return [decode(each.data) for each in found]


def rows(batches: list[Batch], kind: Kind = Kind.SUBSCRIPTION) -> list[dict[str, Any]]:
    found = []
    for batch in batches:
        columns = batch.columns.get(kind, {})
        for place in range(batch.rows.get(kind, 0)):
            found.append({name: values[place] for name, values in columns.items()})
    return found


def test_rows_cover_the_time_between_looks() -> None:
    made = windows()
    first = decoded(list(made.window([subscription(50), topic(52)], at(60))))
    second = decoded(list(made.window([subscription(110), topic(112)], at(120))))
    (one,), (two,) = rows(first), rows(second)
    assert (one["covered_from_ns"], one["covered_to_ns"]) == (WALL, WALL + 50 * S)
    assert (two["covered_from_ns"], two["covered_to_ns"]) == (WALL + 50 * S, WALL + 110 * S)
    assert one["counting_since_ns"] == two["counting_since_ns"] == WALL
    assert (one["topic"], one.get("partition"), one["subscription"]) == (TOPIC, None, "billing")
    assert two["state_no_consumer_ns"] == 110 * S
    assert "state" not in one or one["state"] is None
    assert rows(first, Kind.TOPIC)[0]["msgs_in"] == 5_200
    # The header reaches back to the first look, so no reader fills time in before it.
    assert second[0].header.window_start_ns == WALL + 50 * S
    assert second[0].header.window_end_ns == WALL + 120 * S
    assert (first[0].header.is_inferred, first[0].header.source) == (True, "agent:prod")
    assert [each.seq for each in first + second] == [0, 1]


def test_a_subject_without_a_new_look_has_no_row() -> None:
    made = windows()
    list(made.window([subscription(50)], at(60)))
    (batch,) = decoded(list(made.window([subscription(50)], at(120))))
    assert batch.rows == {}
    (row,) = rows(decoded(list(made.window([subscription(170)], at(180)))))
    assert row["covered_from_ns"] == WALL + 50 * S


def test_counting_that_began_anew_is_another_stream() -> None:
    made = windows()
    list(made.window([subscription(50)], at(60)))
    (row,) = rows(decoded(list(made.window([subscription(110, since_s=70)], at(120)))))
    assert row["counting_since_ns"] == row["covered_from_ns"] == WALL + 70 * S
    list(made.window([], at(180)))  # the history forgot it
    (row,) = rows(decoded(list(made.window([subscription(230, since_s=70)], at(240)))))
    assert row["covered_from_ns"] == WALL + 70 * S


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
    list(made.window([subscription(50)], at(60)))
    (batch,) = decoded(list(made.window([subscription(110)], at(120, step_ns=-3_600 * S))))
    assert batch.header.clock_step
    assert batch.header.window_start_ns <= batch.header.window_end_ns
    (row,) = rows([batch])
    assert row["covered_from_ns"] <= row["covered_to_ns"] == WALL + (110 - 3_600) * S
    assert row["counting_since_ns"] <= row["covered_from_ns"]
    (batch,) = decoded(list(made.window([subscription(170)], at(180, step_ns=-3_600 * S))))
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
