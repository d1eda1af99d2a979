"""The clients and brokers of the stage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.demo.scenes import ADAPTIVE, MAIN, SCENES, WIDE
from headgate.demo.stage import Stage, client_work, old_backlogs

_URLS = {MAIN: "pulsar://main", WIDE: "pulsar://wide", ADAPTIVE: "pulsar://adaptive"}


def test_consumers_start_before_producers() -> None:
    work = client_work(SCENES, _URLS, 60.0)
    assert list(work) == ["consumers", "producers"]
    assert not work["consumers"].producers
    assert not work["producers"].consumers


def test_every_subscription_but_one_has_a_consumer() -> None:
    consumers = client_work(SCENES, _URLS, 60.0)["consumers"].consumers
    named = [f"{each.topic.rpartition('/')[2]}/{each.subscription}" for each in consumers]
    assert len(named) == 12
    assert "returns/archive" not in named
    invoices = consumers[named.index("metering/invoices")]
    assert (invoices.rate_per_s, invoices.queue_size) == (400, 1_000)
    assert consumers[named.index("clicks/search")].rate_per_s is None


def test_every_topic_has_one_producer_at_its_broker() -> None:
    producers = client_work(SCENES, _URLS, 60.0)["producers"].producers
    assert len(producers) == len({each.topic for each in producers}) == 12
    wide = {each.topic.rpartition("/")[2] for each in producers if each.service_url == _URLS[WIDE]}
    assert wide == {"sensors-a", "sensors-b", "sensors-c"}


def test_rates_change_with_the_phases_of_the_demo() -> None:
    producers = client_work(SCENES, _URLS, 60.0)["producers"].producers
    rates = {each.topic.rpartition("/")[2]: (each.rates_per_s, each.phase_s) for each in producers}
    assert rates["parcels"] == ((100, 300, 100), 20.0)
    assert rates["orders"] == ((100,), 60.0)


def test_a_producer_that_is_slowed_waits_for_its_receipts() -> None:
    producers = client_work(SCENES, _URLS, 60.0)["producers"].producers
    waits = {each.topic.rpartition("/")[2]: each.pending_max for each in producers}
    assert {topic: most for topic, most in waits.items() if most is not None} == {"videos": 100}


def test_an_initial_backlog_outlasts_the_demo() -> None:
    moving = [each for each in SCENES if each.relative]
    (backlog,) = old_backlogs(moving, "pulsar://main", 60.0).backlogs
    assert (backlog.service_url, backlog.messages) == ("pulsar://main", 7_500)
    assert backlog.topic.endswith("/parcels")


class _Priorities:
    """This process' priority, as far as the system allows to change it."""

    def __init__(self, now: int, least: int) -> None:
        self.now = now
        self._least = least

    def get(self, _which: int, _process: int) -> int:
        return self.now

    def set(self, _which: int, _process: int, priority: int) -> None:
        if priority < self._least:
            raise PermissionError
        self.now = priority


@pytest.mark.parametrize(
    ("now", "least", "then"),
    [(0, -20, -10), (0, 0, 0), (10, -20, 10), (-5, -20, -5)],
    ids=["allowed", "not allowed", "arranged to give way", "arranged to come first"],
)
def test_brokers_get_a_higher_priority_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: int, least: int, then: int
) -> None:
    priorities = _Priorities(now, least)
    monkeypatch.setattr(os, "getpriority", priorities.get)
    monkeypatch.setattr(os, "setpriority", priorities.set)
    with Stage(tmp_path, (), 60.0) as stage:
        stage.start_brokers()
    assert priorities.now == then
