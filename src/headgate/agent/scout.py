"""Looks at a cluster: asks what is due, within the budget, and tells the history.

Requests run in an executor's threads; everything else happens in :meth:`Scout.step`, so history,
plan and budget need no locks. A broker that does not answer is told as such, and never as a broker
without a backlog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random
from typing import Annotated, Final, NamedTuple, Protocol

import msgspec

from headgate.access.admin_api import BODY_BYTES_MAX, AccessRefusedError, UnreachableError
from headgate.agent.cluster_client import (
    ANSWER_BYTES_MAX,
    TIMEOUT_S,
    ClusterClient,
    NotABrokerError,
    Reply,
)
from headgate.agent.limit_questions import LimitQuestions
from headgate.agent.limits_reading import LimitAnswers, limits_look
from headgate.agent.look_plan import OF_SUPERUSERS, Look, LookKind, LookPlan
from headgate.agent.looks import LimitsLook, ProofLook, QuotaLook, TopicLook
from headgate.agent.questions import RATES, path_of
from headgate.agent.quota_reading import QuotaAnswers, quota_look
from headgate.agent.reading import proof_look, survey_looks, topic_look
from headgate.agent.request_budget import SLOW_S, RequestBudget
from headgate.agent.standing import Contact, Standing
from headgate.agent.taking_turns import taking_turns
from headgate.base.clock import Clock
from headgate.base.errors import HeadgateError, InputError
from headgate.base.names import InvalidNameError, parse_topic
from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S

SUSPECTS_MAX: Final = 200
PROOFS_MAX: Final = 20
SWEEP_TOPICS_MAX: Final = 1_000
"""Topics of the named namespaces that are looked at each minute, where there is no survey."""
PARTITIONS_MAX: Final = 1_000
BROKERS_MAX: Final = 1_000
SURVEY_TIMEOUT_S: Final = 60.0
SURVEY_SLOW_S: Final = 10.0
"""A survey is one large answer: its time says less about the broker than that of others."""
SURVEYS_AT_ONCE: Final = 1
"""An answer may have 150 MB."""
SURVEY_SLICE: Final = 1_000
"""Topics of a survey that are read at a time: about 0.1 s."""
READ_S: Final = 0.001
"""Rest between two of these."""
PROBLEMS_MAX: Final = 100
POLL_S: Final = 0.05
"""How often to look whether a request is done."""
REPLAN_NS: Final = 5 * NS_PER_S
"""How often suspects are chosen anew: it goes over all topics."""
REPLAN_TOPICS_NS: Final = NS_PER_S
"""The same where only some topics are looked at."""

SUBSCRIPTIONS_MAX: Final = 5
"""Subscriptions of a topic, largest backlog first, whose own limits are asked."""
QUOTAS_PART: Final = 10
"""Namespaces whose quotas are asked at a time, as a part of the suspects."""
OF_TOPIC: Final = (LookKind.STATS, LookKind.SWEEP, LookKind.PROOF)
_GONE: Final = 404


class History(Protocol):
    """What the looks are told to; :class:`headgate.agent.shared_history.SharedHistory`."""

    def note_look(self, look: TopicLook) -> None:
        """The figures of a topic or partition."""

    def note_proof(self, proof: ProofLook) -> None:
        """Where the cursors of a topic or partition are."""

    def note_limits(self, limits: LimitsLook) -> None:
        """The limits in force for a topic."""

    def note_quotas(self, quotas: QuotaLook) -> None:
        """The backlog quotas of a namespace."""

    def note_gone(self, topic: str, at_ns: int) -> None:
        """No broker has the topic any more."""

    def note_unreachable(self, broker: str, at_ns: int, reason: str) -> None:
        """A broker does not answer, so its topics are not known."""

    def suspects(self, count: int, now_ns: int) -> list[str]:
        """Topics and partitions that are worth a close look, the worst first."""

    def proofs_wanted(self, count: int, now_ns: int) -> list[str]:
        """Those whose cursors are worth a look."""

    def limits_wanted(self, count: int, now_ns: int) -> list[str]:
        """Those whose limits matter."""

    def quotas_wanted(self, count: int, now_ns: int) -> list[str]:
        """Namespaces whose backlog quotas matter."""

    def forget(self, before_ns: int) -> None:
        """Forget what is older."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to look at: ``topics`` alone if there are any, else the whole cluster or, for a role
    that is no superuser, ``namespaces``."""

    topics: tuple[str, ...] = ()
    """Full names of topics or partitions."""
    namespaces: tuple[str, ...] = ()
    only_namespaces: bool = False
    """Whether other namespaces are left out for a superuser too."""
    suspects_max: int = SUSPECTS_MAX
    proofs_max: int = PROOFS_MAX
    left_out: frozenset[str] = frozenset()
    """Full names of topics, partitioned ones without a number, that are never looked at."""


@dataclass(slots=True)
class Figures:
    """What the scout did since it began, by kind of look."""

    looks: Counter[LookKind] = field(default_factory=Counter)
    """Those that were answered and understood."""
    errors: Counter[LookKind] = field(default_factory=Counter)
    last_good_ns: dict[LookKind, int] = field(default_factory=dict)
    requests: int = 0


class _Outcome(NamedTuple):
    """What a thread brings back."""

    reply: Reply | None
    """The last one."""
    answers: LimitAnswers | QuotaAnswers | None
    error: HeadgateError | None
    took_s: float
    requests: int


class Scout:
    """The looks at one cluster. All methods belong to one thread."""

    def __init__(
        self,
        client: ClusterClient,
        history: History,
        plan: LookPlan,
        budget: RequestBudget,
        executor: Executor,
        clock: Clock,
        random: Random,
        scope: Scope | None = None,
    ) -> None:
        self._client = client
        self._history = history
        self._plan = plan
        self._budget = budget
        self._executor = executor
        self._clock = clock
        self._random = random
        self._scope = scope or Scope()
        self._running: dict[Future[_Outcome], tuple[Look, str, int]] = {}
        self._partitions: dict[str, list[str]] = {}
        self._topics: dict[str, list[str]] = {}
        self._subscriptions: dict[str, list[str]] = {}
        """The largest backlogs of the topics of the scope."""
        self._survey: tuple[Look, Iterator[TopicLook]] | None = None
        """The survey that is being read."""
        self._limits = LimitQuestions(client, clock)
        self._replan_ns = self._forget_ns = clock.monotonic_ns()
        self._contact = Contact()
        self.figures = Figures()
        self.problems: dict[Look, str] = {}
        """The looks that failed last time, each with a sentence."""
        self.missing: set[str] = set()
        """Topics of the scope that the cluster does not have."""
        self.lacks_superuser = False
        """Whether the cluster refuses the list of its brokers or the survey."""
        self.is_stranger = False
        """Whether it then did not accept the credentials: the role may be any."""
        self.is_refused = False
        """Whether the cluster ever refused a topic or namespace of the scope."""
        self.topics_left_out = 0
        """Topics and partitions beyond the bounds, at which nothing looks."""
        self.topics_unnamed = 0
        """Topics of the last survey with no name, such as ``tenant/cluster/namespace/topic`` of
        Pulsar 1."""
        self._begin(clock.monotonic_ns())

    def _begin(self, now_ns: int) -> None:
        self._plan.want(LookKind.BROKERS, [""], now_ns)
        names = [parse_topic(topic) for topic in self._scope.topics]
        whole = [name.full for name in names if name.partition < 0]
        self._plan.want(LookKind.PARTITIONS, whole, now_ns)
        self._partitions = {name.full: [name.full] for name in names if name.partition >= 0}
        self._replan(now_ns)

    def step(self) -> float:
        """Ask what is due, and tell the history what was answered; the seconds until there is more
        to do."""
        self._collect()
        self._read_survey(SURVEY_SLICE)
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._replan_ns:
            self._replan(now_ns)
        for look in self._plan.due(now_ns):
            now_ns = self._clock.monotonic_ns()
            if self._budget.wait_ns(now_ns):
                break
            self._start(look, now_ns)
        self._collect()
        return self._wait_s()

    def close(self) -> None:
        """Wait for the requests that run, and tell the history of them."""
        for future in list(self._running):
            future.exception()
        self._collect()
        self._read_survey(None)

    def standing(self) -> Standing:
        """What is known of the cluster as a whole."""
        good_ns = self.figures.last_good_ns
        surveys = [good_ns[kind] for kind in (LookKind.SURVEY, LookKind.SWEEP) if kind in good_ns]
        contact = self._contact
        return Standing(
            contact.is_reachable, contact.since_ns, contact.reason,
            len(self._client.brokers) or None, max(surveys, default=None), self.topics_left_out,
        )  # fmt: skip

    def not_seen(self) -> list[str]:
        """What could not be looked at, in sentences."""
        found = []
        if self.lacks_superuser and not (self.is_stranger or self._scope.topics):
            found.append(
                "the role is no superuser, so the cluster tells nothing of all its topics: "
                + (
                    f"seen are the topics of {', '.join(self._scope.namespaces)} alone"
                    if self._scope.namespaces
                    else "name a topic, or namespaces with --namespace"
                )
            )
        if self.topics_left_out:
            found.append(f"{self.topics_left_out:,} topics or partitions are beyond what it asks")
        if self.topics_unnamed:
            found.append(
                f"{self.topics_unnamed:,} topics of a broker have names in a form that is not known"
            )
        found += sorted({text for look, text in self.problems.items() if self._is_told(look)})
        return found

    def _is_told(self, look: Look) -> bool:
        """Whether the problem of a look is worth a sentence: not that a role is no superuser,
        which another sentence says."""
        return self.is_stranger or not (self.lacks_superuser and look.kind in OF_SUPERUSERS)

    def _start(self, look: Look, now_ns: int) -> None:
        broker = self._broker(look)
        if look.kind is LookKind.SURVEY and self._surveys() >= SURVEYS_AT_ONCE:
            return
        count = self._requests(look, broker)
        if not self._budget.take(broker, now_ns, count):
            return
        self._plan.note_start(look)
        future = self._executor.submit(self._ask, look)
        self._running[future] = look, broker, count

    def _surveys(self) -> int:
        running = sum(look.kind is LookKind.SURVEY for look, _, _ in self._running.values())
        return running + (self._survey is not None)

    def _broker(self, look: Look) -> str:
        if look.kind is LookKind.SURVEY:
            return look.subject
        return self._client.owner_of(look.subject) if look.kind in OF_TOPIC else ""

    def _requests(self, look: Look, broker: str) -> int:
        """How many requests a look probably takes: one that has to find the owner is sent on."""
        if look.kind is LookKind.LIMITS:
            return len(RATES) + len(self._subscriptions.get(look.subject, ()))
        if look.kind is LookKind.QUOTAS:
            return 1
        is_sent_on = look.kind in OF_TOPIC and not broker and len(self._client.brokers) > 1
        return 2 if is_sent_on else 1

    def _ask(self, look: Look) -> _Outcome:
        """Runs in a thread of the executor."""
        start_ns = self._clock.monotonic_ns()
        reply: Reply | None = None
        answers: LimitAnswers | QuotaAnswers | None = None
        error: HeadgateError | None = None
        self._client.take_sent()
        is_survey = look.kind is LookKind.SURVEY
        try:
            if look.kind is LookKind.LIMITS:
                asked = self._subscriptions.get(look.subject, ())
                answers, _ = self._limits.ask(look.subject, asked)
            elif look.kind is LookKind.QUOTAS:
                answers = self._limits.ask_quotas(look.subject)
            else:
                reply = self._client.get(
                    path_of(look.kind, look.subject, is_close=bool(self._scope.topics)),
                    owner=look.subject if is_survey else "",
                    topic=look.subject if look.kind in OF_TOPIC else "",
                    timeout_s=SURVEY_TIMEOUT_S if is_survey else TIMEOUT_S,
                    bytes_max=BODY_BYTES_MAX if is_survey else ANSWER_BYTES_MAX,
                )
        except HeadgateError as failure:
            # Its traceback has this frame, which has the error: only a collection would free both.
            error = failure.with_traceback(None)
        requests = self._client.take_sent()
        took_s = (self._clock.monotonic_ns() - start_ns) / NS_PER_S
        return _Outcome(reply, answers, error, took_s / max(1, requests), requests)

    def _collect(self) -> None:
        for future in [future for future in self._running if future.done()]:
            look, broker, taken = self._running.pop(future)
            now_ns = self._clock.monotonic_ns()
            if (bug := future.exception()) is not None:
                # The look is over all the same: it is asked again, and its place is free.
                self._budget.note_end(broker, now_ns, 0.0, None)
                self._note(look, f"an internal error: {bug!r}", now_ns)
                raise bug
            outcome = future.result()
            reply = outcome.reply
            status = 200 if outcome.answers is not None else None if reply is None else reply.status
            slow_s = SURVEY_SLOW_S if look.kind is LookKind.SURVEY else SLOW_S
            self._budget.note_end(broker, now_ns, outcome.took_s, status, slow_s)
            if outcome.requests > taken:
                self._budget.note_more(outcome.requests - taken, now_ns)
            self.figures.requests += outcome.requests
            self._note_contact(look, outcome, now_ns)
            problem = "an internal error"
            try:
                problem = self._handle(look, broker, outcome, now_ns)
            finally:
                self._note(look, problem, now_ns)

    def _note_contact(self, look: Look, outcome: _Outcome, now_ns: int) -> None:
        if outcome.reply is not None or isinstance(outcome.error, AccessRefusedError):
            self._contact.note_answer(now_ns)
        elif outcome.error is not None and look.kind is LookKind.BROKERS:
            # The only look that always goes to the cluster's own URL.
            self._contact.note_failure(now_ns, str(outcome.error))

    def _note(self, look: Look, problem: str, now_ns: int) -> None:
        self._plan.note_end(look, now_ns, self._random.random(), is_good=not problem)
        self.problems.pop(look, None)
        if not problem:
            self.figures.looks[look.kind] += 1
            self.figures.last_good_ns[look.kind] = now_ns
            return
        self.figures.errors[look.kind] += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems[look] = problem

    def _handle(self, look: Look, broker: str, outcome: _Outcome, now_ns: int) -> str:
        """Tell the history; what is wrong with the answer, empty if nothing is."""
        error, reply = outcome.error, outcome.reply
        if isinstance(error, AccessRefusedError) and look.kind in OF_SUPERUSERS:
            self.lacks_superuser, self.is_stranger = True, not error.lacks_a_right
            self._plan.want(LookKind.SURVEY, [], now_ns)
            self._plan.want(LookKind.TOPICS, self._scope.namespaces, now_ns)
            return str(error)
        self.is_refused |= isinstance(error, AccessRefusedError)
        if isinstance(error, UnreachableError) and broker:
            # Of the admin URL, which may be that of a balancer, the problems tell.
            self._history.note_unreachable(broker, now_ns, str(error))
        if error is not None:
            return str(error)
        if outcome.answers is not None:
            answers = outcome.answers
            return self._told(lambda: self._note_policies(look.subject, answers, now_ns))
        if reply is None:
            return "no answer"
        if reply.status == _GONE and look.kind in (*OF_TOPIC, LookKind.PARTITIONS):
            return self._note_gone(look, reply)
        if not reply.is_ok:
            why = f": {reply.reason}" if reply.reason else ""
            return f"{reply.owner or self._client.url} answers with status {reply.status}{why}"
        return self._told(lambda: self._note_answer(look, reply, now_ns))

    def _told(self, note: Callable[[], None]) -> str:
        try:
            note()
        except (InputError, NotABrokerError) as error:
            return str(error)
        return ""

    def _note_gone(self, look: Look, reply: Reply) -> str:
        self._client.forget_owner(look.subject)
        if look.kind in (LookKind.STATS, LookKind.SWEEP):
            self._history.note_gone(look.subject, reply.at_ns)
        if look.subject not in self._scope.topics:
            return ""
        self.missing.add(look.subject)
        return reply.reason or f"Topic {look.subject} not found"

    def _note_policies(
        self, subject: str, answers: LimitAnswers | QuotaAnswers, now_ns: int
    ) -> None:
        if isinstance(answers, QuotaAnswers):
            self._history.note_quotas(quota_look(subject, now_ns, answers))
            return
        look = limits_look(subject, now_ns, answers)
        for part in self._partitions.get(subject, [subject]):
            self._history.note_limits(replace(look, topic=part))

    def _note_answer(self, look: Look, reply: Reply, now_ns: int) -> None:
        kind, topic = look
        self.missing.discard(topic)
        if kind is LookKind.BROKERS:
            self._note_brokers(reply, now_ns)
        elif kind is LookKind.PARTITIONS:
            self._note_partitions(topic, reply, now_ns)
        elif kind is LookKind.TOPICS:
            self._note_topics(topic, reply, now_ns)
        elif kind is LookKind.SURVEY:
            self._note_survey(look, reply, now_ns)
        elif kind is LookKind.PROOF:
            self._history.note_proof(proof_look(reply.body, topic, reply.at_ns))
        else:
            seen = topic_look(reply.body, topic, reply.at_ns, reply.owner)
            self._history.note_look(seen)
            if self._scope.topics:
                largest = sorted(seen.subscriptions, key=lambda sub: -(sub.backlog or 0))
                base = topic if topic in self._scope.topics else parse_topic(topic).base.full
                names = [sub.name for sub in largest] + self._subscriptions.get(base, [])
                self._subscriptions[base] = list(dict.fromkeys(names))[:SUBSCRIPTIONS_MAX]

    def _read_survey(self, count: int | None) -> None:
        """Go on with the survey that is being read; ``count`` as in :meth:`_read_slice`."""
        if self._survey is None:
            return
        look = self._survey[0]
        try:
            self._read_slice(count)
        except InputError as error:
            self.figures.errors[look.kind] += 1
            self.problems[look] = str(error)

    def _read_slice(self, count: int | None) -> None:
        """Tell the history of the next ``count`` topics of a broker; None: of all that are left."""
        if self._survey is None:
            return
        look, (topics, self._survey) = self._survey[0], (self._survey[1], None)
        read = 0
        try:
            for seen in islice(topics, count):
                read += 1
                if not _is_topic(seen.topic):
                    self.topics_unnamed += 1
                elif self._is_wanted(seen.topic):
                    self._history.note_look(seen)
        finally:
            if read == count:
                self._survey = look, topics
            else:
                self._replan(self._clock.monotonic_ns())

    def _note_survey(self, look: Look, reply: Reply, now_ns: int) -> None:
        """Begin to tell the history of all topics of a broker. The other looks go on between
        slices."""
        self.topics_unnamed = 0
        self._survey = look, survey_looks(reply.body, reply.at_ns, reply.owner)
        self._read_slice(SURVEY_SLICE)
        if self._topics:
            # The role may ask for surveys again, which show more.
            self._topics, self.topics_left_out = {}, 0
            self._plan.want(LookKind.SWEEP, [], now_ns)

    def _is_wanted(self, topic: str) -> bool:
        scope = self._scope
        if not scope.left_out and not scope.only_namespaces:
            return True
        name = parse_topic(topic)
        is_listed = not (scope.only_namespaces and scope.namespaces) or (
            str(name.namespace) in scope.namespaces
        )
        return is_listed and name.base.full not in scope.left_out

    def _note_brokers(self, reply: Reply, now_ns: int) -> None:
        brokers = _names(reply, "its brokers")[:BROKERS_MAX]
        if not brokers:
            raise NotABrokerError(f"{self._client.url} lists no broker of its cluster")
        self._client.note_brokers(brokers)
        self.lacks_superuser = self.is_stranger = False
        if not self._scope.topics:
            self._plan.want(LookKind.SURVEY, brokers, now_ns)
            self._plan.want(LookKind.TOPICS, [], now_ns)

    def _note_partitions(self, topic: str, reply: Reply, now_ns: int) -> None:
        count = _partitions(reply)
        name = parse_topic(topic)
        self.topics_left_out = max(0, count - PARTITIONS_MAX)
        shown = range(min(count, PARTITIONS_MAX))
        self._partitions[topic] = [name.partition_name(i).full for i in shown] or [topic]
        self._replan(now_ns)

    def _note_topics(self, namespace: str, reply: Reply, now_ns: int) -> None:
        self._topics[namespace] = [
            topic
            for topic in _names(reply, "topics")
            if _is_topic(topic) and self._is_wanted(topic)
        ]
        found = [(ns, -i, topic) for ns, own in self._topics.items() for i, topic in enumerate(own)]
        self.topics_left_out = max(0, len(found) - SWEEP_TOPICS_MAX)
        self._plan.want(LookKind.SWEEP, taking_turns(found, SWEEP_TOPICS_MAX), now_ns)

    def _replan(self, now_ns: int) -> None:
        """Choose the suspects anew, and forget what is older than an hour."""
        scope, history = self._scope, self._history
        self._replan_ns = now_ns + (REPLAN_TOPICS_NS if scope.topics else REPLAN_NS)
        parts = [part for parts in self._partitions.values() for part in parts]
        suspects = parts if scope.topics else history.suspects(scope.suspects_max, now_ns)
        self._plan.want(LookKind.STATS, suspects, now_ns)
        proofs = self._chosen(history.proofs_wanted(scope.proofs_max, now_ns), parts)
        self._plan.want(LookKind.PROOF, proofs, now_ns)
        limits: Sequence[str] = history.limits_wanted(scope.suspects_max, now_ns)
        if scope.topics:
            # A history takes the limits of what it knows.
            limits = scope.topics if self.figures.looks[LookKind.STATS] else ()
        self._plan.want(LookKind.LIMITS, limits, now_ns)
        if not scope.topics:
            quotas = max(1, scope.suspects_max // QUOTAS_PART)
            self._plan.want(LookKind.QUOTAS, history.quotas_wanted(quotas, now_ns), now_ns)
        self._forget_problems()
        if now_ns >= self._forget_ns:
            self._forget_ns = now_ns + NS_PER_MINUTE
            history.forget(now_ns - NS_PER_HOUR)

    def _forget_problems(self) -> None:
        """Forget the problems of looks that are not wanted any more: they tell of the past."""
        if not self.problems:
            return
        wanted = {kind: set(self._plan.subjects(kind)) for kind in LookKind}
        self.problems = {
            look: text
            for look, text in self.problems.items()
            if look.subject in wanted[look.kind]
            # What the role may not ask is wanted no more, and still worth a sentence.
            or (self.lacks_superuser and look.kind is LookKind.SURVEY)
        }

    def _chosen(self, topics: Iterable[str], parts: list[str]) -> list[str]:
        known = set(parts)
        return [topic for topic in topics if not self._scope.topics or topic in known]

    def _wait_s(self) -> float:
        now_ns = self._clock.monotonic_ns()
        planned_ns = self._plan.wait_ns(now_ns)
        until_ns = max(0, self._replan_ns - now_ns)
        if planned_ns is not None:
            until_ns = min(until_ns, max(planned_ns, self._budget.wait_ns(now_ns)))
        if self._survey is not None:
            return READ_S
        if self._running or not until_ns:
            return POLL_S
        return until_ns / NS_PER_S


def _names(reply: Reply, what: str) -> list[str]:
    try:
        return msgspec.json.decode(reply.body, type=list[str])
    except msgspec.MsgspecError:
        raise NotABrokerError(
            f"what answers for {what} gives no list of names: it is no broker"
        ) from None


class _Partitioned(msgspec.Struct):
    partitions: Annotated[int, msgspec.Meta(ge=0)]


def _partitions(reply: Reply) -> int:
    try:
        return msgspec.json.decode(reply.body, type=_Partitioned).partitions
    except msgspec.MsgspecError:
        raise NotABrokerError(
            "what answers for partitions gives no number: it is no broker"
        ) from None


def _is_topic(text: str) -> bool:
    try:
        return parse_topic(text).is_persistent
    except InvalidNameError:
        return False
