"""Positions by cluster and partition, as Spark's checkpoint stores them."""

from __future__ import annotations

import json

import pytest

from headgate.pipeline.streaming.cluster_offsets import (
    changed_partitions,
    of_topic,
    offsets_from_json,
    offsets_to_json,
    with_topic,
)
from pyspark_pulsar.errors import OffsetError

T = "persistent://a/b/t"


def test_equal_positions_give_the_same_text() -> None:
    one = {"b": {T: "1:2:-1:-1"}, "a": {f"{T}-partition-1": "3:4:1:-1", T: "0:0:-1:-1"}}
    other = {"a": dict(reversed(one["a"].items())), "b": one["b"]}
    assert json.dumps(offsets_to_json(one)) == json.dumps(offsets_to_json(other))
    assert offsets_from_json(offsets_to_json(one)) == one


@pytest.mark.parametrize("offset", [{}, {"v": 2, "clusters": {}}, {"v": 1, "t": {}}])
def test_another_offset_is_refused(offset: dict[str, object]) -> None:
    with pytest.raises(OffsetError, match="this release reads version 1"):
        offsets_from_json(offset)


def test_a_topic_has_its_partitions_and_no_other_topic() -> None:
    positions = {T: "1", f"{T}-partition-0": "2", f"{T}2": "3", f"{T}2-partition-0": "4"}
    assert of_topic(positions, T) == {T: "1", f"{T}-partition-0": "2"}
    # A topic may be named like a partition.
    assert of_topic(positions, f"{T}-partition-0") == {f"{T}-partition-0": "2"}


def test_other_topics_and_clusters_keep_their_positions() -> None:
    offsets = {"a": {T: "1", f"{T}2": "3"}, "b": {T: "5"}}
    assert with_topic(offsets, "a", T, {T: "2"}) == {"a": {T: "2", f"{T}2": "3"}, "b": {T: "5"}}
    assert with_topic(offsets, "c", T, {T: "2"}) == {**offsets, "c": {T: "2"}}


def test_changed_partitions_are_those_of_a_batch() -> None:
    start = {"a": {T: "1", f"{T}2": "3"}, "b": {T: "5"}}
    end = {"a": {T: "2", f"{T}2": "3"}, "b": {T: "5"}, "c": {T: "1"}}
    assert changed_partitions(start, end) == {("a", T), ("c", T)}
    assert changed_partitions({}, start) == {("a", T), ("a", f"{T}2"), ("b", T)}
