"""Requests about limits: what is shared is asked once a minute, what is refused is not known."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headgate.access.admin_api import UnreachableError
from headgate.agent import limit_questions
from headgate.agent.limit_questions import KEPT_MAX, LimitQuestions
from headgate.agent.questions import SETTINGS
from headgate.base.units import NS_PER_S
from headgate.testing.fake_cluster import FakeTopic
from tests.unit.agent.clusters import BROKERS, TOPIC, Setting

OTHER = "persistent://acme/shop/other"


def setting() -> Setting:
    found = Setting()
    policies = {"dispatchRate": {"dispatchThrottlingRateInMsg": 5}, "a/dispatchRate": {"x": 1}}
    found.cluster.add([FakeTopic(TOPIC, policies=policies)])
    found.cluster.settings["k"] = "v"
    return found


def test_the_answers_have_their_places() -> None:
    one = setting()
    answers, requests = LimitQuestions(one.client, one.clock).ask(TOPIC, ["a", "b"])
    assert requests == len(one.transport.sent_at_ns) == 7
    assert answers.dispatch_rate == b'{"dispatchThrottlingRateInMsg": 5}'
    assert (answers.publish_rate, answers.subscription_dispatch_rate) == (b"", b"")
    assert answers.by_subscription == {"a": b'{"x": 1}', "b": b""}
    assert (answers.namespace, answers.settings) == (b"{}", b'{"k": "v"}')


def test_what_is_shared_is_asked_once_a_minute() -> None:
    one = setting()
    questions = LimitQuestions(one.client, one.clock)
    topics = (TOPIC, f"{OTHER}-partition-0", f"{OTHER}-partition-1", TOPIC)
    assert [questions.ask(topic, [])[1] for topic in topics] == [5, 3, 0, 0]
    one.clock.advance(60 * NS_PER_S)
    assert questions.ask(TOPIC, [])[1] == 5


def test_what_is_kept_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    one = setting()
    monkeypatch.setattr(limit_questions, "KEPT_BYTES_MAX", 10)
    questions = LimitQuestions(one.client, one.clock)
    questions.ask(TOPIC, [])
    assert SETTINGS in questions._shared
    assert not any("dispatchRate" in path for path in questions._shared)


@pytest.mark.parametrize("is_away", [False, True])
def test_threads_that_ask_the_same_send_one_request(
    monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    one = setting()
    questions = LimitQuestions(one.client, one.clock)
    answer, begun, go_on, asked = one.client.get, threading.Event(), threading.Event(), []

    def slow(path: str, **options: object) -> object:
        asked.append(path)
        begun.set()
        assert go_on.wait(10)
        if is_away:
            raise UnreachableError("http://pulsar:8080 did not answer within 10 s")
        return answer(path)

    monkeypatch.setattr(one.client, "get", slow)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(questions._kept, SETTINGS, [])
        assert begun.wait(10)
        second = threads.submit(questions._kept, SETTINGS, [])
        with pytest.raises(TimeoutError):
            second.result(0.05)
        go_on.set()
        if is_away:
            assert isinstance(first.exception(), UnreachableError)
            assert isinstance(second.exception(), UnreachableError)
        else:
            assert first.result() == second.result() == b'{"k": "v"}'
    assert asked == [SETTINGS]
    monkeypatch.setattr(one.client, "get", answer)
    assert questions._kept(SETTINGS, []) == b'{"k": "v"}'


def test_what_the_role_may_not_read_is_not_known() -> None:
    one = setting()
    one.faults.refused = lambda path, token: 403 if "configuration" in path else None
    answers, _ = LimitQuestions(one.client, one.clock).ask(TOPIC, [])
    assert (answers.settings, answers.namespace) == (None, b"{}")


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    one = setting()
    one.faults.gone |= set(BROKERS)
    with pytest.raises(UnreachableError):
        LimitQuestions(one.client, one.clock).ask(TOPIC, [])


def test_answers_are_kept_within_a_bound() -> None:
    one = setting()
    questions = LimitQuestions(one.client, one.clock)
    for index in range(KEPT_MAX):
        questions.ask(f"{OTHER}-{index}", [])
        assert len(questions._shared) <= KEPT_MAX
