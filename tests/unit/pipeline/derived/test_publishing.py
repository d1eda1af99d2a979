"""Which hours the tables about limiters follow from."""

from __future__ import annotations

from headgate.pipeline.derived.publishing import PublishAttribution, ThrottleTimeline
from tests.unit.pipeline.derived.source_files import HOUR, file, is_input, touched


def test_publishing_follows_from_its_hour_and_the_minute_before() -> None:
    publishing = PublishAttribution()
    live = [file(HOUR + ahead, "topic") for ahead in (-1, 0, 1)]
    assert set(touched(publishing, live[1:2], live)) == {HOUR, HOUR + 1}
    assert [is_input(publishing, f, {HOUR}) for f in live] == [True, True, False]
    assert is_input(publishing, file(HOUR, "limiter"), {HOUR})
    assert not is_input(publishing, file(HOUR), {HOUR})
    timeline = ThrottleTimeline()
    assert set(touched(timeline, live[1:2], live)) == {HOUR}
    assert is_input(timeline, file(HOUR, "limiter"), {HOUR})
    assert not is_input(timeline, file(HOUR, "topic"), {HOUR})
    assert not is_input(timeline, file(HOUR - 1, "limiter"), {HOUR})
