"""The scout over a fake cluster, in virtual time: what it asks, what it tells, what it survives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from headgate.access.admin_api import BODY_BYTES_MAX, UnreachableError
from headgate.access.client_config import ClientConfig
from headgate.agent import scout
from headgate.agent.cluster_client import ANSWER_BYTES_MAX, ClusterClient
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.look_plan import Look, LookKind, LookPeriods, LookPlan
from headgate.agent.looks import LimitsLook, ProofLook, QuotaLook, TopicLook
from headgate.agent.questions import SURVEY
from headgate.agent.request_budget import RequestBudget
from headgate.agent.scout import SURVEY_SLICE, Scope, Scout
from headgate.agent.shared_history import SharedHistory
from headgate.agent.transport import RawReply
from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_HOUR, NS_PER_S, S_PER_HOUR
from headgate.testing.fake_cluster import FakeCluster, Faults, InlineExecutor
from headgate.testing.fake_cluster.cluster import FakeSubscription, FakeTopic, many_topics
from headgate.testing.fake_cluster.transport import gibberish
from tests.unit.agent.clusters import BROKERS, TOPIC, URL, Setting


class NotedHistory:
    """Keeps the last look of each topic."""

    def __init__(self) -> None:
        self.looks: dict[str, TopicLook] = {}
        self.count: Counter[str] = Counter()
        self.close: Counter[str] = Counter()
        self.proofs: list[ProofLook] = []
        self.limits: list[LimitsLook] = []
        self.gone: list[str] = []
        self.unreachable: list[tuple[str, str]] = []
        self.forgotten_ns: list[int] = []
        self.namespaces: list[str] = []
        self.quotas: dict[str, QuotaLook] = {}

    def note_look(self, look: TopicLook) -> None:
        self.looks[look.topic] = look
        self.count[look.topic] += 1
        if not look.is_survey:
            self.close[look.topic] += 1

    def note_proof(self, proof: ProofLook) -> None:
        self.proofs.append(proof)

    def note_limits(self, limits: LimitsLook) -> None:
        self.limits.append(limits)

    def note_gone(self, topic: str, at_ns: int) -> None:
        self.gone.append(topic)
        self.looks.pop(topic, None)

    def note_unreachable(self, broker: str, at_ns: int, reason: str) -> None:
        self.unreachable.append((broker, reason))

    def suspects(self, count: int, now_ns: int) -> list[str]:
        backlogs = {
            topic: max((sub.backlog or 0 for sub in look.subscriptions), default=0)
            for topic, look in self.looks.items()
        }
        return sorted((t for t in backlogs if backlogs[t]), key=lambda t: -backlogs[t])[:count]

    def proofs_wanted(self, count: int, now_ns: int) -> list[str]:
        return self.suspects(count, now_ns)

    def limits_wanted(self, count: int, now_ns: int) -> list[str]:
        return self.suspects(count, now_ns)

    def note_quotas(self, quotas: QuotaLook) -> None:
        self.quotas[quotas.namespace] = quotas

    def quotas_wanted(self, count: int, now_ns: int) -> list[str]:
        return [name for name in self.namespaces if name not in self.quotas][:count]

    def forget(self, before_ns: int) -> None:
        self.forgotten_ns.append(before_ns)


class Run(Setting):
    """A scout over a cluster."""

    def __init__(
        self,
        cluster: FakeCluster | None = None,
        faults: Faults | None = None,
        scope: Scope | None = None,
        config: ClientConfig | None = None,
        periods: LookPeriods | None = None,
        history: Any = None,
    ) -> None:
        super().__init__(cluster, faults, config)
        self.history = history or NotedHistory()
        self.plan = LookPlan(periods)
        self.budget = RequestBudget()
        self.scout = Scout(
            self.client, self.history, self.plan, self.budget, InlineExecutor(), self.clock,
            Random(1), scope,
        )  # fmt: skip

    def play(self, seconds: float) -> None:
        end_ns = self.clock.monotonic_ns() + round(seconds * NS_PER_S)
        while self.clock.monotonic_ns() < end_ns:
            wait_s = self.scout.step()
            assert wait_s > 0
            self.clock.advance(round(wait_s * NS_PER_S))

    def requests_in_any_second_max(self) -> int:
        sent = self.transport.sent_at_ns
        most, first = 0, 0
        for last, at_ns in enumerate(sent):
            while sent[first] <= at_ns - NS_PER_S:
                first += 1
            most = max(most, last - first + 1)
        return most


def cluster_of(count: int = 200, brokers: int = 4, backlogs: int = 10) -> FakeCluster:
    names = [f"broker-{index}:8080" for index in range(brokers)]
    cluster = FakeCluster(names, age_ns=600 * NS_PER_S)
    cluster.add(many_topics(count, backlogs=backlogs))
    return cluster


def test_a_survey_finds_the_suspects_which_are_looked_at_closely() -> None:
    run = Run(cluster_of())
    run.play(60)
    assert len(run.history.looks) == 200
    suspects = set(run.history.suspects(200, 0))
    assert len(suspects) == 10
    assert set(run.history.close) == suspects
    # From the end of the first survey on, each 5 s in the mean.
    assert all(9 <= count <= 16 for count in run.history.close.values())
    assert {proof.topic for proof in run.history.proofs} == suspects
    assert 30 <= len(run.history.proofs) <= 60
    assert {limits.topic for limits in run.history.limits} == suspects
    assert all(not limits.unknown for limits in run.history.limits)


def test_owners_are_asked_without_a_detour() -> None:
    run = Run(cluster_of())
    run.play(120)
    before, asked = run.scout.figures.requests, len(run.transport.sent_at_ns)
    assert before == asked
    run.play(60)
    looks = run.scout.figures.looks
    assert run.scout.figures.errors.total() == 0
    assert 12 <= looks[LookKind.SURVEY] <= 16
    balancer = [url for url in run.transport.urls if url.startswith(URL)]
    assert all("/stats" not in url.split("?")[0].rsplit("/", 1)[-1] for url in balancer[-20:])


def test_the_budget_holds_in_every_second() -> None:
    run = Run(cluster_of(300, backlogs=250), periods=LookPeriods({LookKind.STATS: 1.0}))
    run.play(60)
    assert len(run.plan.subjects(LookKind.STATS)) == 200
    # A look that had to find the owner of its topic sends a request more.
    assert 40 <= run.requests_in_any_second_max() <= 52


def test_a_week_at_the_defaults_keeps_its_pace_and_its_size() -> None:
    run = Run(cluster_of(20, brokers=2, backlogs=2), faults=Faults(took_s=0.02))
    run.history.note_proof = lambda proof: None  # type: ignore[method-assign]
    run.play(3 * S_PER_HOUR)
    first = len(run.transport.sent_at_ns)
    run.transport.sent_at_ns.clear()
    run.play(3 * S_PER_HOUR)
    assert abs(len(run.transport.sent_at_ns) - first) < first / 20
    assert run.scout.problems == {}
    assert len(run.scout._running) == 0
    assert sum(map(len, run.plan._looks.values())) < 20
    assert len(run.history.forgotten_ns) == pytest.approx(2 * 180, rel=0.05)
    assert run.history.forgotten_ns[-1] < run.clock.monotonic_ns() - NS_PER_HOUR + 1


def test_half_of_the_brokers_are_gone() -> None:
    run = Run(cluster_of(100))
    run.play(60)
    run.faults.gone |= {BROKERS[1], BROKERS[3]}
    run.history.looks.clear()
    run.play(180)
    alive = {t for t in run.cluster.topics if run.cluster.owner(t) in (BROKERS[0], BROKERS[2])}
    assert set(run.history.looks) == alive
    assert {broker for broker, _ in run.history.unreachable} >= {BROKERS[1], BROKERS[3]}
    told = run.scout.not_seen()
    assert any(BROKERS[1] in text and "did not answer" in text for text in told)
    # The others answer, so the cluster does.
    assert run.scout.standing().is_reachable
    run.faults.gone.clear()
    run.play(180)
    assert set(run.history.looks) == set(run.cluster.topics)
    assert run.scout.not_seen() == []


@pytest.mark.parametrize("call", range(40))
def test_any_call_may_fail(call: int) -> None:
    run = Run(cluster_of(8, brokers=2, backlogs=2), faults=Faults(failing_call=call))
    run.play(130)
    assert set(run.history.looks) == set(run.cluster.topics)
    assert run.scout.problems == {}
    # The policies that a cluster does not answer are unknown, which is no error.
    assert run.scout.figures.errors.total() <= 1


def test_numbers_that_are_none_are_not_known() -> None:
    run = Run(cluster_of(40), faults=Faults(spoil=gibberish))
    run.play(60)
    figures = [
        figure
        for look in run.history.looks.values()
        for figure in (look.published, *(sub.backlog for sub in look.subscriptions))
    ]
    assert None in figures
    assert all(figure is None or figure >= 0 for figure in figures)


def test_loops_and_overload_and_pages_are_told_and_end() -> None:
    run = Run(cluster_of(40))
    run.play(30)
    run.faults.status = 429
    run.play(60)
    assert run.budget.per_s < 10
    assert any("status 429: too many requests" in text for text in run.scout.not_seen())
    run.faults.status = None
    run.faults.is_page = True
    run.play(60)
    assert any("web page" in text for text in run.scout.not_seen())
    run.faults.is_page = False
    run.faults.is_looping = True
    run.play(60)
    assert any("in circles" in text for text in run.scout.not_seen())
    run.faults.is_looping = False
    run.play(200)
    assert run.scout.not_seen() == []
    assert run.budget.per_s == 50


def not_superuser(path: str, _token: str) -> int | None:
    needs = ("/admin/v2/brokers", "/admin/v2/broker-stats")
    return 403 if path.startswith(needs) and "version" not in path else None


def test_a_superuser_sees_the_named_namespaces_alone_if_that_is_wanted() -> None:
    for is_only, namespaces in ((True, {"acme/ns-1"}), (False, set[str]())):
        run = Run(cluster_of(), scope=Scope(namespaces=("acme/ns-1",), only_namespaces=is_only))
        run.play(60)
        seen = {str(parse_topic(topic).namespace) for topic in run.history.looks}
        assert seen == namespaces if is_only else len(seen) > 1


def test_without_superuser_the_named_namespaces_are_looked_at() -> None:
    scope = Scope(namespaces=("acme/ns-1", "acme/ns-2"))
    run = Run(cluster_of(200), Faults(refused=not_superuser), scope)
    run.play(90)
    seen = {topic.split("/")[3] for topic in run.history.looks}
    assert seen == {"ns-1", "ns-2"}
    assert len(run.history.looks) == 20
    assert run.scout.lacks_superuser
    standing = run.scout.standing()
    assert (standing.is_reachable, standing.brokers) == (True, None)
    assert standing.survey_ns is not None
    assert run.scout.not_seen() == [
        "the role is no superuser, so the cluster tells nothing of all its topics: seen are the "
        "topics of acme/ns-1, acme/ns-2 alone"
    ]
    assert all("superuser" in limits.unknown[0] for limits in run.history.limits)


def test_without_superuser_and_namespaces_it_says_what_to_name() -> None:
    run = Run(cluster_of(20), Faults(refused=not_superuser))
    run.play(30)
    assert run.history.looks == {}
    assert "name a topic, or namespaces with --namespace" in run.scout.not_seen()[0]


def test_credentials_that_are_not_accepted_any_more_are_told_as_that() -> None:
    run = Run(cluster_of(20))
    run.play(30)
    assert run.scout.not_seen() == []
    run.faults.refused = lambda path, token: 401
    run.faults.refusal = "Authentication required or failed"
    run.play(130)
    assert run.scout.not_seen()
    assert all("Authentication required or failed" in each for each in run.scout.not_seen())
    run.faults.refused = lambda path, token: None
    run.play(130)
    assert run.scout.not_seen() == []


def test_a_right_that_comes_later_is_found() -> None:
    run = Run(cluster_of(20), Faults(refused=not_superuser))
    run.play(30)
    run.faults.refused = lambda path, token: None
    run.play(130)
    assert set(run.history.looks) == set(run.cluster.topics)
    assert run.scout.not_seen() == []


def partitioned(count: int = 3) -> FakeCluster:
    cluster = FakeCluster(list(BROKERS))
    cluster.partitioned[TOPIC] = count
    cluster.add(
        FakeTopic(f"{TOPIC}-partition-{index}", 10, [FakeSubscription()]) for index in range(count)
    )
    return cluster


def test_a_partitioned_topic_is_looked_at_by_its_partitions_alone() -> None:
    cluster = partitioned()
    cluster.add(many_topics(50))
    periods = LookPeriods({LookKind.STATS: 1.0})
    run = Run(cluster, scope=Scope(topics=(TOPIC,)), periods=periods)
    run.play(30)
    assert set(run.history.looks) == {f"{TOPIC}-partition-{index}" for index in range(3)}
    assert all(22 <= count <= 40 for count in run.history.count.values())
    # Partitions have the policies of their topic, which are asked once.
    assert {limits.topic for limits in run.history.limits} == set(run.history.looks)
    assert sum("dispatchRate" in url for url in run.transport.urls) <= 2
    assert run.scout.missing == set()


def test_one_partition_is_looked_at_alone() -> None:
    part = f"{TOPIC}-partition-1"
    run = Run(partitioned(), scope=Scope(topics=(part,)))
    run.play(30)
    assert set(run.history.looks) == {part}


def test_a_topic_that_does_not_exist_is_missing_until_it_does() -> None:
    run = Run(scope=Scope(topics=(TOPIC,)))
    run.play(10)
    assert run.scout.missing == {TOPIC}
    run.cluster.add([FakeTopic(TOPIC, 1.0)])
    run.play(130)
    assert run.scout.missing == set()
    assert TOPIC in run.history.looks


def test_a_deleted_topic_is_told_gone_and_no_longer_asked() -> None:
    run = Run(cluster_of(20, backlogs=3))
    run.play(30)
    name = run.history.suspects(1, 0)[0]
    run.cluster.remove(name)
    run.play(20)
    assert run.history.gone == [name]
    assert run.scout.problems == {}


def test_a_topic_that_moves_is_followed() -> None:
    run = Run(cluster_of(20, backlogs=3))
    run.play(30)
    name = run.history.suspects(1, 0)[0]
    before = run.history.close[name]
    other = next(b for b in BROKERS if b != run.cluster.owner(name))
    run.cluster.move(name, other)
    run.play(30)
    assert run.history.close[name] > before + 2
    assert run.history.looks[name].owner == other
    assert run.scout.figures.errors.total() == 0


def test_a_topic_with_very_many_partitions_says_what_is_left_out() -> None:
    cluster = FakeCluster(list(BROKERS))
    cluster.partitioned[TOPIC] = 1_500
    run = Run(cluster, scope=Scope(topics=(TOPIC,)))
    run.play(2)
    assert run.scout.not_seen()[0] == "500 topics or partitions are beyond what it asks"


def test_looks_go_on_for_hours_although_the_admin_url_is_gone() -> None:
    run = Run(cluster_of(20))
    run.faults.gone |= set(BROKERS)
    run.play(S_PER_HOUR)
    assert len(run.transport.sent_at_ns) < 100
    away = run.scout.standing()
    assert (away.is_reachable, away.brokers, away.survey_ns) == (False, None, None)
    assert "did not answer" in away.reason
    run.faults.gone.clear()
    run.play(120)
    assert set(run.history.looks) == set(run.cluster.topics)
    standing = run.scout.standing()
    assert (standing.is_reachable, standing.brokers, standing.reason) == (True, len(BROKERS), "")
    assert standing.since_ns is not None
    assert away.since_ns is not None
    assert standing.since_ns > away.since_ns
    assert standing.survey_ns is not None


def test_close_takes_in_what_runs() -> None:
    run = Run(cluster_of(20))
    run.scout.step()
    run.scout.close()
    assert len(run.scout._running) == 0


def test_the_client_is_closed_by_its_owner() -> None:
    run = Run()
    assert isinstance(run.client, ClusterClient)
    run.client.close()


def test_a_name_that_is_none_costs_no_other_topic() -> None:
    def old_names(body: bytes) -> bytes:
        """One topic has a name of Pulsar 1."""
        return body.replace(b"persistent://acme/ns-7/", b"persistent://acme/use/ns-7/")

    run = Run(cluster_of(20, brokers=1), faults=Faults(spoil=old_names))
    run.play(30)
    assert len(run.history.looks) == 19
    assert run.scout.not_seen() == ["1 topics of a broker have names in a form that is not known"]


def test_a_bug_in_one_look_does_not_end_that_look_for_ever() -> None:
    run = Run(cluster_of(20, brokers=1))
    inner, errors = run.history.note_look, [ValueError("a bug")] * 6

    def note_look(look: TopicLook) -> None:
        if errors:
            raise errors.pop()
        inner(look)

    run.history.note_look = note_look  # type: ignore[method-assign]
    failed = 0
    for _ in range(400):
        try:
            run.clock.advance(round(run.scout.step() * NS_PER_S))
        except ValueError:
            failed += 1
            run.clock.advance(10 * NS_PER_S)
    assert failed == 6
    assert set(run.history.looks) == set(run.cluster.topics)


def test_a_bug_in_a_thread_does_not_use_up_the_places_of_a_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(cluster_of(20, brokers=1))
    failed = 0
    with monkeypatch.context() as patch:
        patch.setattr(run.client, "get", lambda *_, **__: 1 // 0)
        for _ in range(20):
            try:
                run.clock.advance(round(run.scout.step() * NS_PER_S))
            except ZeroDivisionError:
                failed += 1
                run.clock.advance(60 * NS_PER_S)
    assert failed > 4
    run.play(400)
    assert set(run.history.looks) == set(run.cluster.topics)


def test_problems_of_what_is_not_looked_at_any_more_are_forgotten() -> None:
    run = Run(cluster_of(20, backlogs=3))
    run.play(30)
    topic = run.history.suspects(1, 0)[0]
    path = f"/{topic.rpartition('/')[2]}/stats"
    run.faults.refused = lambda where, _token: 500 if where.endswith(path) else None
    run.play(20)
    assert any("status 500" in text for text in run.scout.not_seen())
    run.cluster.topics[topic].subscriptions.clear()
    run.play(240)
    assert run.scout.not_seen() == []


def test_a_cluster_that_lists_no_broker_is_told_and_the_known_ones_are_asked() -> None:
    run = Run(cluster_of(20))
    run.play(30)
    run.faults.spoil = lambda body: b"[]" if body.startswith(b'["broker') else body
    run.play(120)
    assert any("lists no broker" in text for text in run.scout.not_seen())
    before = run.scout.figures.looks[LookKind.SURVEY]
    run.play(120)
    assert run.scout.figures.looks[LookKind.SURVEY] > before


def test_surveys_end_the_sweep_of_namespaces() -> None:
    scope = Scope(namespaces=("acme/ns-1",))
    run = Run(cluster_of(40), Faults(refused=not_superuser), scope)
    run.play(90)
    assert len(run.plan.subjects(LookKind.SWEEP)) == 2
    run.faults.refused = lambda path, token: None
    run.play(130)
    assert run.plan.subjects(LookKind.SWEEP) == []


def test_a_namespace_with_very_many_topics_leaves_looks_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scout, "SWEEP_TOPICS_MAX", 6)
    cluster = cluster_of(20, backlogs=0)
    cluster.add(
        FakeTopic(f"persistent://acme/a/t{number}", 10, [FakeSubscription()])
        for number in range(30)
    )
    own = "persistent://acme/z/own"
    cluster.add([FakeTopic(own, 10, [FakeSubscription()])])
    scope = Scope(namespaces=("acme/a", "acme/z"))
    run = Run(cluster, Faults(refused=not_superuser), scope)
    run.play(150)
    assert own in run.history.looks
    assert len(run.plan.subjects(LookKind.SWEEP)) == 6
    assert any("25 topics or partitions are beyond" in text for text in run.scout.not_seen())


@pytest.mark.parametrize("refused", [lambda _path, _token: None, not_superuser])
def test_what_is_left_out_is_not_looked_at(refused: Callable[[str, str], int | None]) -> None:
    cluster = cluster_of(20, backlogs=0)
    cluster.add(
        FakeTopic(f"persistent://acme/ns-1/own-partition-{index}", 10, [FakeSubscription()])
        for index in range(2)
    )
    own = frozenset({"persistent://acme/ns-1/own"})
    scope = Scope(namespaces=("acme/ns-1",), left_out=own)
    run = Run(cluster, Faults(refused=refused), scope)
    run.play(150)
    assert run.history.looks
    assert not any("own" in topic for topic in run.history.looks)


def test_requests_that_led_nowhere_count() -> None:
    run = Run(cluster_of(100, backlogs=60))
    run.play(60)
    run.faults.is_looping = True
    run.play(120)
    assert run.scout.figures.errors[LookKind.STATS] > 60
    assert run.scout.figures.requests == len(run.transport.sent_at_ns)
    run.faults.gone |= set(BROKERS[1:])
    run.play(60)
    assert run.scout.figures.requests == len(run.transport.sent_at_ns)


def test_a_question_for_an_owner_counts() -> None:
    run = Run(cluster_of(20), Faults(refused=not_superuser), Scope(namespaces=("acme/ns-1",)))
    run.play(60)
    assert any("/lookup/" in url for url in run.transport.urls)
    assert run.scout.figures.requests == len(run.transport.sent_at_ns)


def quota_cluster() -> FakeCluster:
    """A topic with few and large messages is near its quota, beside many with more messages."""
    cluster = FakeCluster(list(BROKERS))
    cluster.add(many_topics(30, backlogs=30))
    large = FakeTopic(TOPIC, 1.0, [FakeSubscription(permits=0)], entry_bytes=1_000_000)
    own = FakeTopic(
        f"{TOPIC}-own", 0.5, [FakeSubscription(permits=0)], entry_bytes=500_000, quota_bytes=10**9
    )
    cluster.add([large, own])
    cluster.quotas["acme/shop"] = {"destination_storage": {"limitSize": 700_000_000}}
    return cluster


def test_a_topic_near_its_quota_is_seen_among_larger_backlogs() -> None:
    history = SharedHistory(ClusterHistory("c"))
    run = Run(quota_cluster(), scope=Scope(suspects_max=20), history=history)
    run.play(200)
    levels = {level.topic: level for level in history.levels()}
    assert levels[TOPIC].limit == 700_000_000
    assert levels[TOPIC].seconds_to_breach == pytest.approx(500, rel=0.1)
    assert levels[TOPIC].period_s is not None
    assert levels[TOPIC].period_s < 15
    # Its own quota was found out by a close look in turn.
    assert levels[f"{TOPIC}-own"].limit == 10**9
    assert run.scout.problems == {}
    asked = [url for url in run.transport.urls if url.endswith("/acme/shop/backlogQuotaMap")]
    assert len(asked) == 1


def test_a_large_survey_is_read_between_other_looks() -> None:
    cluster = FakeCluster(list(BROKERS[:1]))
    cluster.add(many_topics(2 * SURVEY_SLICE + 5))
    run = Run(cluster)
    read = []
    while len(run.history.looks) < len(cluster.topics):
        wait_s = run.scout.step()
        read.append(len(run.history.looks))
        run.clock.advance(round(wait_s * NS_PER_S))
    found = list(dict.fromkeys(read))
    assert [found[found.index(SURVEY_SLICE)], found[-2], found[-1]] == [
        SURVEY_SLICE, 2 * SURVEY_SLICE, 2 * SURVEY_SLICE + 5,
    ]  # fmt: skip
    assert run.scout.figures.looks[LookKind.SURVEY] == 1


def test_a_stop_reads_a_survey_to_its_end() -> None:
    cluster = FakeCluster(list(BROKERS[:1]))
    cluster.add(many_topics(SURVEY_SLICE + 5))
    run = Run(cluster)
    while not run.history.looks:
        run.clock.advance(round(run.scout.step() * NS_PER_S))
    run.scout.close()
    assert len(run.history.looks) == SURVEY_SLICE + 5


def test_a_survey_alone_may_be_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster gets a dozen of other requests at a time."""
    run = Run(cluster_of(20))
    bounds: dict[bool, set[int]] = {False: set(), True: set()}
    get = run.transport.get

    def noted(url: str, headers: Any, timeout_s: float, bytes_max: int) -> RawReply:
        bounds[url.endswith(SURVEY)].add(bytes_max)
        return get(url, headers, timeout_s, bytes_max)

    monkeypatch.setattr(run.transport, "get", noted)
    run.play(10)
    assert bounds == {True: {BODY_BYTES_MAX}, False: {ANSWER_BYTES_MAX}}


def test_an_error_of_a_look_has_no_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would have the error: only a collection would free what was read for the look."""
    run = Run(cluster_of(20))
    error = UnreachableError("http://broker-1:8080 answers with too much")

    def fail(*_args: Any, **_options: Any) -> Any:
        raise error

    monkeypatch.setattr(run.client, "get", fail)
    assert run.scout._ask(Look(LookKind.STATS, TOPIC)).error is error
    assert error.__traceback__ is None
