"""The law of requests: 50 a second, four at once for a broker, half after a slow answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.agent.request_budget import REST_NS, RequestBudget
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_MS, NS_PER_S

START_NS = 5 * NS_PER_S


def test_no_second_has_more_than_its_requests() -> None:
    budget = RequestBudget(per_s=10, at_once=100)
    sent = [now for now in range(0, 3 * NS_PER_S, NS_PER_MS) if budget.take("b", now)]
    assert len(sent) == 30
    assert all(later - first >= NS_PER_S for first, later in zip(sent, sent[10:], strict=False))


def test_one_broker_works_on_four_and_others_on_theirs() -> None:
    budget = RequestBudget()
    assert [budget.take("a", START_NS) for _ in range(5)] == [True] * 4 + [False]
    assert budget.take("b", START_NS)
    budget.note_end("a", START_NS, 0.01, 200)
    assert budget.take("a", START_NS)


@pytest.mark.parametrize(("took_s", "status"), [(1.5, 200), (0.1, 429), (0.1, 503)])
def test_a_slow_or_overloaded_answer_halves_the_rate_once_a_second(
    took_s: float, status: int
) -> None:
    budget = RequestBudget()
    for _ in range(3):
        budget.note_end("a", START_NS, took_s, status)
    assert (budget.per_s, budget.per_s_max, budget.halved) == (25, 50, 1)
    budget.note_end("a", START_NS + NS_PER_S, took_s, status)
    assert budget.per_s == 12
    for second in range(2, 20):
        budget.note_end("a", START_NS + second * NS_PER_S, took_s, status)
    assert budget.per_s == 1


@pytest.mark.parametrize(("took_s", "status"), [(3.0, 200), (0.1, 503)])
def test_few_slow_answers_among_many_are_about_what_is_asked_for(
    took_s: float, status: int
) -> None:
    """A topic with thousands of subscriptions of a client halved the rate of all other looks again
    and again, until no survey was made."""
    budget = RequestBudget()
    for tick in range(20 * 40):
        budget.note_end("a", START_NS + tick * NS_PER_S // 40, 0.1, 200)
        if tick % 20 == 19:
            budget.note_end("b", START_NS + tick * NS_PER_S // 40, took_s, status)
    assert (budget.per_s, budget.halved) == (50, 0)
    for tick in range(40):
        budget.note_end("b", START_NS + 20 * NS_PER_S + tick * NS_PER_S // 40, took_s, status)
    assert budget.halved == 1


def test_a_survey_may_take_longer_than_other_answers() -> None:
    budget = RequestBudget()
    budget.note_end("a", START_NS, 5.0, 200, slow_s=10.0)
    assert budget.per_s == 50


def test_the_rate_recovers_after_ten_seconds_of_good_answers() -> None:
    budget = RequestBudget()
    budget.note_end("a", START_NS, 2.0, 200)
    budget.note_end("a", START_NS + REST_NS - 1, 0.1, 200)
    assert budget.per_s == 25
    rates = []
    for second in range(12):
        budget.note_end("a", START_NS + REST_NS + second * NS_PER_S, 0.1, 200)
        rates.append(budget.per_s)
    assert rates[:3] == [27, 29, 31]
    assert rates[-1] == 50


def test_no_answer_neither_halves_nor_restores_the_rate() -> None:
    budget = RequestBudget()
    budget.note_end("a", START_NS, 0.5, 429)
    budget.note_end("a", START_NS + 2 * REST_NS, 0.5, None)
    assert budget.per_s == 25


def test_requests_that_were_sent_on_count() -> None:
    budget = RequestBudget(per_s=10)
    assert budget.take("a", START_NS)
    budget.note_more(9, START_NS)
    assert not budget.take("b", START_NS)
    assert budget.wait_ns(START_NS) == NS_PER_S
    assert budget.take("b", START_NS + NS_PER_S)


def test_several_requests_at_once_fit_together_or_wait() -> None:
    budget = RequestBudget(per_s=10)
    assert budget.take("a", START_NS, 6)
    assert not budget.take("b", START_NS, 6)
    assert budget.take("b", START_NS, 4)


def test_several_requests_go_after_a_second_without_any_at_a_low_rate() -> None:
    budget = RequestBudget(per_s=2)
    assert budget.take("a", START_NS, 5)
    assert not budget.take("a", START_NS + 1, 5)
    assert budget.take("a", START_NS + NS_PER_S, 5)


@given(
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from([200, 429, None])), max_size=200),
)
def test_the_rate_stays_between_one_and_its_maximum(events: list[tuple[int, int | None]]) -> None:
    budget, now_ns = RequestBudget(), START_NS
    for wait_ms, status in events:
        now_ns += wait_ms * NS_PER_MS
        if budget.take("a", now_ns):
            budget.note_end("a", now_ns, 0.1, status)
        assert 1 <= budget.per_s <= 50
        assert 0 <= budget.wait_ns(now_ns) <= NS_PER_S


@pytest.mark.parametrize("amounts", [(0, 4), (50, 0)])
def test_a_budget_of_nothing_is_refused(amounts: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="1 or more"):
        RequestBudget(*amounts)
