"""How many jobs may be on a lane."""

from __future__ import annotations

from headgate.base.units import NS_PER_MS, NS_PER_US
from headgate.storage.job_times import COUNT_MIN, JobTimes


def test_short_jobs_have_the_number_that_is_asked_for() -> None:
    times = JobTimes()
    assert times.at_once(16) == 16
    times.took(NS_PER_MS)
    assert times.at_once(16) == 16
    assert times.at_once(1) == 1


def test_as_many_as_take_the_time_that_others_may_wait() -> None:
    times = JobTimes()
    times.took(5 * NS_PER_MS)
    assert times.at_once(16) == 4
    times.took(200 * NS_PER_MS)
    assert times.at_once(16) == COUNT_MIN
    assert times.at_once(1) == 1


def test_one_short_job_does_not_hide_long_ones() -> None:
    """Who asks for what is in memory and for what is not in turn would have all of them there."""
    times = JobTimes()
    times.took(40 * NS_PER_MS)
    counts = []
    for _ in range(100):
        times.took(30 * NS_PER_US)
        counts.append(times.at_once(8))
    assert counts[0] == COUNT_MIN
    assert counts == sorted(counts)
    assert counts.index(8) > 40
