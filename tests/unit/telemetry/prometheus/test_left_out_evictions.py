"""The evictions of topics that come and go on a page of metrics."""

from __future__ import annotations

from headgate.telemetry.prometheus.left_out_evictions import LeftOutEvictions

NAMESPACE = "acme/shop"


def test_the_first_page_has_the_sum_of_the_others() -> None:
    counted = LeftOutEvictions()
    rest = counted.rest({NAMESPACE: [7, 3], "other/n": [1, 0]}, {NAMESPACE: {"a": (5, 1)}})
    assert rest == {NAMESPACE: (2, 2), "other/n": (1, 0)}


def test_a_topic_that_comes_or_goes_is_no_eviction() -> None:
    counted = LeftOutEvictions()
    total = {NAMESPACE: [7, 0]}
    assert counted.rest(total, {NAMESPACE: {"a": (5, 0)}}) == {NAMESPACE: (2, 0)}
    assert counted.rest(total, {NAMESPACE: {"b": (2, 0)}}) == {NAMESPACE: (2, 0)}
    assert counted.rest(total, {}) == {NAMESPACE: (2, 0)}
    assert counted.rest(total, {NAMESPACE: {"a": (5, 0)}}) == {NAMESPACE: (2, 0)}


def test_evictions_count_where_they_happen() -> None:
    counted = LeftOutEvictions()
    counted.rest({NAMESPACE: [0, 0]}, {NAMESPACE: {"a": (0, 0)}})
    # Of a topic with series of its own, and of others.
    assert counted.rest({NAMESPACE: [3, 0]}, {NAMESPACE: {"a": (2, 0)}}) == {NAMESPACE: (1, 0)}
    # Of a topic that gets its series with this page: a new series shows no increase.
    assert counted.rest({NAMESPACE: [4, 0]}, {NAMESPACE: {"a": (2, 0), "b": (1, 0)}}) == {
        NAMESPACE: (2, 0)
    }
    # Of a topic that loses its series.
    assert counted.rest({NAMESPACE: [5, 0]}, {NAMESPACE: {"a": (2, 0)}}) == {NAMESPACE: (3, 0)}


def test_a_topic_that_was_unloaded_counts_anew() -> None:
    counted = LeftOutEvictions()
    counted.rest({NAMESPACE: [4, 0]}, {NAMESPACE: {"a": (4, 0)}})
    assert counted.rest({NAMESPACE: [5, 0]}, {NAMESPACE: {"a": (1, 0)}}) == {NAMESPACE: (0, 0)}


def test_a_namespace_that_is_deleted_and_comes_again_counts_anew() -> None:
    counted = LeftOutEvictions()
    counted.rest({NAMESPACE: [9, 0]}, {NAMESPACE: {"a": (0, 0)}})
    assert counted.rest({NAMESPACE: [9, 0]}, {NAMESPACE: {"a": (9, 0)}}) == {NAMESPACE: (0, 0)}
    assert counted.rest({}, {}) == {}
    assert counted.rest({NAMESPACE: [2, 1]}, {}) == {NAMESPACE: (2, 1)}
    # Between two pages.
    counted.rest({NAMESPACE: [8, 1]}, {NAMESPACE: {"a": (0, 0)}})
    counted.rest({NAMESPACE: [8, 1]}, {NAMESPACE: {"a": (6, 0)}})
    assert counted.rest({NAMESPACE: [1, 0]}, {}) == {NAMESPACE: (0, 0)}
    assert counted.rest({NAMESPACE: [3, 0]}, {}) == {NAMESPACE: (2, 0)}
