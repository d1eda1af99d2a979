"""Requests beyond Pulsar's limit a second are refused, of all clients together."""

from __future__ import annotations

from headgate.app.http_rate import HttpRate
from headgate.base.units import NS_PER_S
from headgate.policy.settings import Settings


def test_without_the_setting_nothing_is_refused() -> None:
    rate = HttpRate(Settings(httpRequestsMaxPerSecond=1.0), 0)
    assert {rate.refusal(0) for _ in range(1_000)} == {""}


def test_each_second_admits_the_limit() -> None:
    settings = Settings(httpRequestsLimitEnabled=True, httpRequestsMaxPerSecond=10.9)
    rate = HttpRate(settings, 0)
    admitted = []
    for step in range(400):
        now_ns = step * NS_PER_S // 100
        if not rate.refusal(now_ns):
            admitted.append(now_ns)
    assert len(admitted) == 40
    for begin in admitted:
        assert sum(begin <= at < begin + NS_PER_S for at in admitted) <= 11
    assert rate.refused_count == 360
    assert rate.refusal(admitted[-1]) == (
        "Too many requests: 10 a second are allowed (httpRequestsMaxPerSecond)"
    )


def test_a_changed_limit_acts_at_once() -> None:
    settings = Settings(httpRequestsLimitEnabled=True, httpRequestsMaxPerSecond=2.0)
    rate = HttpRate(settings, 0)
    assert [bool(rate.refusal(0)) for _ in range(3)] == [False, False, True]
    settings.httpRequestsMaxPerSecond = 5.0
    assert [bool(rate.refusal(1)) for _ in range(4)].count(False) >= 2
