"""Who connects where."""

from __future__ import annotations

from headgate.demo.scenes import MAIN, SCENES, WIDE
from headgate.demo.stage import client_work

_URLS = {MAIN: "pulsar://main", WIDE: "pulsar://wide"}


def test_consumers_are_there_before_producers() -> None:
    work = client_work(SCENES, _URLS)
    assert list(work) == ["consumers", "producers"]
    assert not work["consumers"].producers
    assert not work["producers"].consumers


def test_every_subscription_but_one_has_a_consumer() -> None:
    consumers = client_work(SCENES, _URLS)["consumers"].consumers
    named = [f"{each.topic.rpartition('/')[2]}/{each.subscription}" for each in consumers]
    assert len(named) == 9
    assert "returns/archive" not in named
    invoices = consumers[named.index("metering/invoices")]
    assert (invoices.rate_per_s, invoices.queue_size) == (400, 1_000)
    assert consumers[named.index("clicks/search")].rate_per_s is None


def test_every_topic_has_one_producer_at_its_broker() -> None:
    producers = client_work(SCENES, _URLS)["producers"].producers
    assert len(producers) == len({each.topic for each in producers}) == 9
    wide = {each.topic.rpartition("/")[2] for each in producers if each.service_url == _URLS[WIDE]}
    assert wide == {"sensors-a", "sensors-b", "sensors-c"}
