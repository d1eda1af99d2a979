"""The law of looks: what is due when."""

from __future__ import annotations

from collections import Counter

import pytest

from headgate.agent.look_plan import Look, LookKind, LookPeriods, LookPlan
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S

NOW_NS = 100 * NS_PER_S
STATS = LookKind.STATS


def done(plan: LookPlan, look: Look, now_ns: int, chance: float = 0.5, good: bool = True) -> None:
    plan.note_start(look)
    plan.note_end(look, now_ns, chance, is_good=good)


def test_a_new_look_is_due_at_once_and_then_each_period() -> None:
    plan = LookPlan()
    plan.want(STATS, ["a"], NOW_NS)
    assert plan.due(NOW_NS) == [Look(STATS, "a")]
    done(plan, Look(STATS, "a"), NOW_NS)
    assert plan.due(NOW_NS + 5 * NS_PER_S - 1) == []
    assert plan.due(NOW_NS + 5 * NS_PER_S) == [Look(STATS, "a")]


def test_what_is_under_way_is_not_due() -> None:
    plan = LookPlan()
    plan.want(STATS, ["a"], NOW_NS)
    plan.note_start(Look(STATS, "a"))
    assert plan.due(NOW_NS + 1_000 * NS_PER_S) == []
    assert plan.wait_ns(NOW_NS) is None


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 2.5), (0.5, 5.0), (1.0, 7.5)])
def test_suspects_are_jittered_by_half_a_period(chance: float, seconds: float) -> None:
    plan = LookPlan()
    plan.want(STATS, ["a"], NOW_NS)
    done(plan, Look(STATS, "a"), NOW_NS, chance)
    assert plan.wait_ns(NOW_NS) == seconds * NS_PER_S


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 54.0), (0.5, 60.0), (1.0, 66.0)])
def test_surveys_are_jittered_little(chance: float, seconds: float) -> None:
    plan = LookPlan()
    plan.want(LookKind.SURVEY, ["a"], NOW_NS)
    done(plan, Look(LookKind.SURVEY, "a"), NOW_NS, chance)
    assert plan.wait_ns(NOW_NS) == pytest.approx(seconds * NS_PER_S)


def test_the_most_urgent_kind_comes_first_then_what_waited_longest() -> None:
    plan = LookPlan()
    plan.want(LookKind.SURVEY, ["broker"], NOW_NS)
    plan.want(STATS, ["late"], NOW_NS + 1)
    plan.want(STATS, ["late", "early"], NOW_NS)
    plan.want(LookKind.BROKERS, [""], NOW_NS + 2)
    assert [look.subject for look in plan.due(NOW_NS + 2)] == ["", "early", "late", "broker"]


def test_where_there_is_time_for_few_looks_each_kind_gets_its_part() -> None:
    """Suspects were all that was looked at, and no survey found what else there is."""
    plan = LookPlan()
    suspects, brokers = [f"s{n}" for n in range(100)], [f"b{n}" for n in range(10)]
    plan.want(STATS, suspects, NOW_NS)
    plan.want(LookKind.SURVEY, brokers, NOW_NS)
    plan.want(LookKind.LIMITS, suspects[:20], NOW_NS)
    done_of: Counter[LookKind] = Counter()
    for second in range(1_200):  # one look a second, where 20 are wanted
        now_ns = NOW_NS + second * NS_PER_S
        look = plan.due(now_ns)[0]
        done(plan, look, now_ns)
        done_of[look.kind] += 1
    assert 50 <= done_of[LookKind.SURVEY] <= 80
    assert 100 <= done_of[LookKind.LIMITS] <= 160
    assert done_of[STATS] > 900


def test_failures_wait_longer_but_at_most_a_minute() -> None:
    plan, look = LookPlan(), Look(STATS, "a")
    plan.want(STATS, ["a"], NOW_NS)
    waits = []
    for _ in range(6):
        done(plan, look, NOW_NS, good=False)
        waits.append((plan.wait_ns(NOW_NS) or 0) // NS_PER_S)
    assert waits == [10, 20, 40, 60, 60, 60]
    done(plan, look, NOW_NS)
    assert plan.wait_ns(NOW_NS) == 5 * NS_PER_S


def test_a_survey_that_fails_keeps_its_period() -> None:
    plan, look = LookPlan(), Look(LookKind.SURVEY, "a")
    plan.want(LookKind.SURVEY, ["a"], NOW_NS)
    for _ in range(5):
        done(plan, look, NOW_NS, good=False)
    assert plan.wait_ns(NOW_NS) == 60 * NS_PER_S


def test_surveys_that_failed_give_way_to_others_for_a_while() -> None:
    """They are made one at a time: few brokers that do not answer took the time of all."""
    survey = LookKind.SURVEY
    plan = LookPlan()
    plan.want(survey, ["hangs", "sound"], NOW_NS)
    done(plan, Look(survey, "hangs"), NOW_NS, good=False)
    done(plan, Look(survey, "sound"), NOW_NS + 200 * NS_PER_S)
    later_ns = NOW_NS + 300 * NS_PER_S
    assert [look.subject for look in plan.due(later_ns)] == ["sound", "hangs"]
    done(plan, Look(survey, "sound"), NOW_NS + 361 * NS_PER_S)
    later_ns = NOW_NS + 430 * NS_PER_S
    assert [look.subject for look in plan.due(later_ns)] == ["hangs", "sound"]
    done(plan, Look(survey, "hangs"), later_ns)
    later_ns += 100 * NS_PER_S
    assert [look.subject for look in plan.due(later_ns)] == ["sound", "hangs"]


def test_who_comes_and_goes_is_not_asked_more_often() -> None:
    plan = LookPlan()
    plan.want(STATS, ["a"], NOW_NS)
    done(plan, Look(STATS, "a"), NOW_NS)
    plan.want(STATS, [], NOW_NS + 1)
    assert plan.subjects(STATS) == []
    assert plan.wait_ns(NOW_NS) is None
    plan.want(STATS, ["a"], NOW_NS + 2)
    assert plan.due(NOW_NS + 2) == []
    assert plan.wait_ns(NOW_NS) == 5 * NS_PER_S


def test_what_is_wanted_no_more_is_forgotten_when_its_time_came() -> None:
    plan = LookPlan()
    for round_ns in range(NOW_NS, NOW_NS + 1_000 * NS_PER_S, NS_PER_S):
        name = f"topic-{round_ns}"
        plan.want(STATS, [name], round_ns)
        done(plan, Look(STATS, name), round_ns)
    assert len(plan._looks[STATS]) < 10


def test_a_look_that_ends_after_it_was_forgotten_changes_nothing() -> None:
    plan = LookPlan()
    plan.want(STATS, ["a"], NOW_NS)
    plan.note_start(Look(STATS, "a"))
    plan.forget(Look(STATS, "a"))
    plan.note_end(Look(STATS, "a"), NOW_NS, 0.5, is_good=True)
    assert plan.subjects(STATS) == []


@pytest.mark.parametrize("seconds", [0.1, 4_000, float("nan")])
def test_a_period_that_is_not_allowed_names_its_kind(seconds: float) -> None:
    with pytest.raises(InputError, match=r"for stats is not allowed: 0.5 to 3,600 s is"):
        LookPeriods({STATS: seconds})
    assert LookPeriods({STATS: 1.0}).of(STATS) == 1.0
    assert LookPeriods().of(LookKind.PROOF) == 15.0
