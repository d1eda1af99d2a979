"""Figures and names as a page of explain prints them."""

from __future__ import annotations

from headgate.cli.explain.figures import (
    capitalized,
    count_text,
    drains_in_s,
    instant_text,
    rate_text,
    short_name,
    topic_title,
)


def test_figures_for_people() -> None:
    assert [rate_text(r) for r in (0, 0.04, 9.94, 9.96, 12.3, 12_345.6, -3.2)] == [
        "0", "0.0", "9.9", "10", "12", "12,346", "-3.2",
    ]  # fmt: skip
    assert [count_text(n, "consumer") for n in (0, 1, 1_000)] == [
        "0 consumers", "1 consumer", "1,000 consumers",
    ]  # fmt: skip


def test_names_and_instants_are_short() -> None:
    assert short_name("persistent://acme/shop/orders") == "acme/shop/orders"
    report = {"topic": "persistent://acme/shop/orders", "partitions": 0}
    assert topic_title(report) == "acme/shop/orders"
    assert topic_title(report | {"partitions": 3}) == "acme/shop/orders (3 partitions)"
    assert instant_text("2026-11-21T18:18:35.123Z") == "2026-11-21 18:18:35 UTC"
    assert capitalized("the disk is full") == "The disk is full"
    assert capitalized("http://b:1 does not answer") == "http://b:1 does not answer"


def test_a_backlog_that_is_lost_does_not_drain() -> None:
    earlier = {"backlogMessages": 1_200, "growthMessages": -600, "windowS": 60.0}
    assert drains_in_s(earlier) == 120
    assert drains_in_s(earlier | {"growthMessages": 1}) is None
    assert drains_in_s(earlier | {"backlogMessages": 0}) is None
    assert drains_in_s(earlier | {"drainsInS": None}) is None
    assert drains_in_s(earlier | {"drainsInS": 7.0}) == 7
