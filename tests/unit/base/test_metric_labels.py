"""Which names of labels are allowed."""

from __future__ import annotations

import pytest

from headgate.base.metric_labels import METRIC_LABELS_MAX, RESERVED_LABELS, problem_of_labels

EIGHT = [f"l{number}" for number in range(METRIC_LABELS_MAX)]


@pytest.mark.parametrize("names", [[], ["team"], ["sla_tier", "app_owner"], ["_x"], EIGHT])
def test_names_of_labels(names: list[str]) -> None:
    assert problem_of_labels(names) == ""
    assert problem_of_labels(names * 2) == ""


@pytest.mark.parametrize(
    "name", ["a-b", "1a", "", "a b", "__name__", "pulsar_x", "otel_x", "x" * 65, "a\n"]
)
def test_what_is_none(name: str) -> None:
    assert problem_of_labels(["team", name]) == f"{name!r} is no name of a label"


def test_what_series_have_already() -> None:
    assert problem_of_labels(["topic"]) == "'topic' is a label already"
    assert all(name.isidentifier() for name in RESERVED_LABELS)


def test_too_many() -> None:
    assert problem_of_labels([*EIGHT, "more"]) == "9 names"
