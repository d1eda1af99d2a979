"""A flood of alerts is bounded, the most severe first."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from headgate.pipeline.alerts.alert import CRITICAL, WARNING, Alert, named
from headgate.pipeline.alerts.selection import LEFT_OUT, selected


def alert(
    name: str, severity: str = WARNING, weight: float = 0.0, namespace: str | None = None
) -> Alert:
    return Alert(named("A", severity, namespace=namespace, topic=name), {}, None, 0, weight)


def topics(alerts: list[Alert]) -> list[str]:
    return [alert.labels.get("topic", alert.labels["alertname"]) for alert in alerts]


def test_few_alerts_are_all_there_in_the_order_of_severity() -> None:
    given = [alert("light"), alert("heavy", weight=9), alert("full", CRITICAL)]
    assert topics(selected(given, (), 3, 7)) == ["full", "heavy", "light"]


def test_of_ten_thousand_the_most_severe_are_sent_and_one_counts_the_rest() -> None:
    given = [alert(f"t{number}", weight=number) for number in range(10_000)]
    found = selected([*given, alert("full", CRITICAL)], (), 500, 7)
    assert len(found) == 501
    assert topics(found)[:2] == ["full", "t9999"]
    assert found[-1].labels == {"alertname": LEFT_OUT, "severity": "warning"}
    assert found[-1].annotations["summary"] == "9,501 more alerts are not sent"
    assert "there are 9,501 A." in found[-1].annotations["description"]
    assert selected(given[:2], (), 1, 7)[-1].annotations["summary"] == "1 more alert is not sent"


def test_very_many_alerts_of_a_tenant_take_no_place_of_another() -> None:
    """A role for one topic may have hundreds of backlogs there, and a tenant as many reached
    quotas: nothing was sent about others, nor that a cluster has no telemetry."""
    quotas = [alert(f"q{n}", CRITICAL, namespace="evil/a") for n in range(50)]
    backlogs = [alert(f"b{n}", weight=99.0, namespace="evil/b") for n in range(50)]
    others = [alert("own", namespace="acme/prod"), alert("cluster", CRITICAL)]
    found = selected([*quotas, *backlogs, *others], (), 10, 7)
    assert {"own", "cluster"} < set(topics(found))
    assert len(found) == 11
    # Also when the target has what the tenant can have open alone.
    is_open = {each.identity for each in [*quotas[:10], *backlogs[:10]]}
    found = selected([*quotas, *backlogs, *others], is_open, 10, 7)
    assert {"own", "cluster"} < set(topics(found))
    assert is_open < {each.identity for each in found}


def rounds(
    chance: random.Random, subjects: list[Alert]
) -> Iterator[tuple[list[Alert], list[Alert]]]:
    """In each of many rounds, what is wrong then, and what of it is sent: at least five, and all
    that is open."""
    is_open = set[str]()
    for _ in range(200):
        wrong = chance.sample(subjects, chance.randrange(len(subjects)))
        found = [each for each in selected(wrong, is_open, 5, 7) if "topic" in each.labels]
        sent = {each.identity for each in found}
        assert is_open & {each.identity for each in wrong} <= sent
        assert min(5, len(wrong)) <= len(sent)
        is_open = sent
        yield wrong, found


@pytest.mark.parametrize("seed", range(20))
def test_open_alerts_of_several_tenants_are_bounded(seed: int) -> None:
    chance = random.Random(seed)
    subjects = [
        alert(f"t{n}", chance.choice((CRITICAL, WARNING)), namespace=f"{n % 7}/n")
        for n in range(60)
    ]
    for _, found in rounds(chance, subjects):
        assert len({each.identity for each in found}) <= 15


def test_an_alert_that_is_open_stays_among_its_equals() -> None:
    light, heavy = alert("light"), alert("heavy", weight=9)
    assert topics(selected([heavy, light], {light.identity}, 1, 7)) == ["light", LEFT_OUT]


def test_an_alert_that_more_severe_ones_displace_stays_open_while_it_lasts() -> None:
    """Its end would say that it is over."""
    light, heavy, full = alert("light"), alert("heavy", weight=9), alert("full", CRITICAL)
    found = selected([heavy, light, full], {light.identity}, 1, 7)
    assert topics(found) == ["full", "light", LEFT_OUT]
    assert found[-1].annotations["summary"] == "1 more alert is not sent"
    assert found[-1].annotations["description"].startswith("Besides the 2 alerts that are sent")
    is_open = {light.identity, full.identity}
    assert topics(selected([light, full], is_open, 1, 7)) == ["full", "light"]
    assert topics(selected([heavy, full], is_open, 1, 7)) == ["full", LEFT_OUT]


@pytest.mark.parametrize("seed", range(20))
def test_open_alerts_are_bounded_whatever_comes_and_goes(seed: int) -> None:
    chance = random.Random(seed)
    subjects = [alert(f"t{n}", chance.choice((CRITICAL, WARNING))) for n in range(40)]
    for wrong, found in rounds(chance, subjects):
        assert len({each.identity for each in found}) <= 10
        severe = [each for each in wrong if each.rank == 0]
        assert min(5, len(severe)) <= sum(each.rank == 0 for each in found) <= 5
