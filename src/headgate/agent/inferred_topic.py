"""One topic or partition of a cluster: its looks, and the subscriptions that they show."""

from __future__ import annotations

from headgate.agent.inferred_subscription import InferredSubscription, Rates, missing_figure
from headgate.agent.looks import LimitsLook, ProofLook, TopicLook
from headgate.agent.publish_limit import Published, publish_limit_sentence
from headgate.base.units import NS_PER_S

SURVEY_AGE_NS = 90 * NS_PER_S
"""How old the figures of a survey may be: a broker writes them once a minute
(``statsUpdateFrequencyInSecs``)."""
GONE_NS = 60 * NS_PER_S
"""A topic that moves is loaded again before."""
PUBLISHED_NS = 180 * NS_PER_S
"""An older look says nothing of what is published now."""
RATE_LOOKS = 8
"""Looks of which the published amounts are kept, for the present publish rate."""


class InferredTopic:
    """Follows one topic or partition from look to look."""

    __slots__ = (
        "_close_ns", "_was_gone", "at_ns", "gone_ns", "limits", "look", "name",
        "owner", "proof_ns", "published", "subscriptions", "unknown",
    )  # fmt: skip

    def __init__(self, name: str, owner: str) -> None:
        self.name = name
        self.owner = owner
        self.look: TopicLook | None = None
        """The last one, without its subscriptions, which have it themselves."""
        self.at_ns = 0
        self.subscriptions: dict[str, InferredSubscription] = {}
        self.unknown: dict[str, str] = {}
        """Subscriptions of which the last look does not tell a figure as a number, and which."""
        self.limits: LimitsLook | None = None
        self.proof_ns: int | None = None
        """The last proof."""
        self._close_ns: int | None = None
        """The last look that was no survey."""
        self.published: list[Published] = []
        self.gone_ns: int | None = None
        """Since when the topic has been deleted, or is being loaded by another broker."""
        self._was_gone = False

    def note_look(self, look: TopicLook) -> None:
        """A look at the topic; one that is older than the last is ignored, as is a survey whose
        figures may be older."""
        if self.look is not None and (look.at_ns <= self.at_ns or self._may_be_older(look)):
            return
        if not look.is_survey:
            if self._close_ns is None:
                # The time between a survey's figures and this look is not known, so nothing
                # follows from what grew meanwhile.
                self._begin_anew()
            self._close_ns = look.at_ns
        is_fresher = self.look is not None and self.look.is_survey and not look.is_survey
        if is_fresher:
            self.published.clear()  # the time between the two is not known
        was_reloaded = self._was_reloaded(look)
        rates = self._rates()
        found = {}
        self.unknown = {}
        for each in look.subscriptions:
            subscription = self.subscriptions.get(each.name)
            if missing := missing_figure(each):
                # Nothing follows without it: as if there had been no look, and never a zero.
                self.unknown[each.name] = missing
                if subscription is not None:
                    found[each.name] = subscription
                continue
            if subscription is None:
                subscription = InferredSubscription(each.name)
                if self.limits is not None:
                    subscription.note_limits(self.limits)
            subscription.note_look(
                each,
                look.at_ns,
                look.published,
                rates,
                was_reloaded=was_reloaded,
                is_fresher=is_fresher,
            )
            found[each.name] = subscription
        self.subscriptions = found  # a subscription that a look lacks was deleted
        self.published.append(Published(look.at_ns, look.published, look.published_bytes))
        del self.published[:-RATE_LOOKS]
        self.look, self.at_ns, self.gone_ns, self._was_gone = look, look.at_ns, None, False
        self.owner = look.owner or self.owner

    def forget_past(self, points: int) -> None:
        """Keep little of what surveys alone have shown, where there is no backlog."""
        for subscription in self.subscriptions.values():
            subscription.forget_past(points)
        if self.limits is None:
            del self.published[:-2]

    def note_limits(self, limits: LimitsLook) -> None:
        """The limits in force from now on."""
        self.limits = limits
        for subscription in self.subscriptions.values():
            subscription.note_limits(limits)

    def note_proof(self, proof: ProofLook) -> None:
        """``internalStats`` of the topic."""
        self.proof_ns = proof.at_ns
        for subscription in self.subscriptions.values():
            subscription.note_proof(proof)

    def note_gone(self, at_ns: int) -> None:
        """The owner answered that it does not have the topic."""
        if self.gone_ns is None:
            self.gone_ns = at_ns
        self._was_gone = True

    def is_gone(self, now_ns: int) -> bool:
        """Whether no broker has had it for so long that it was deleted, and not moved."""
        return self.gone_ns is not None and now_ns - self.gone_ns > GONE_NS

    def publish_rates(self) -> tuple[float | None, float | None]:
        """Messages and bytes a second over the last looks; None if not known."""
        if len(self.published) < 2:
            return None, None
        first, last = self.published[0], self.published[-1]
        elapsed_ns = last.at_ns - first.at_ns
        return (
            _rate(first.messages, last.messages, elapsed_ns),
            _rate(first.bytes, last.bytes, elapsed_ns),
        )

    def _may_be_older(self, look: TopicLook) -> bool:
        """Whether a survey's figures may be from before the last close look."""
        return (
            look.is_survey
            and self._close_ns is not None
            and look.at_ns - self._close_ns <= SURVEY_AGE_NS
            and look.owner == self.owner
            and not self._was_gone
        )

    def _begin_anew(self) -> None:
        for name, each in self.subscriptions.items():
            if each.looks == 1:
                self.subscriptions[name] = InferredSubscription(name)
                if self.limits is not None:
                    self.subscriptions[name].note_limits(self.limits)
        if len(self.published) == 1:
            self.published.clear()

    def held_publishing(self, now_ns: int) -> str:
        """That its publish limit holds producers now; empty if looks do not show that."""
        if self.limits is None or now_ns - self.at_ns > PUBLISHED_NS or self.is_gone(now_ns):
            return ""
        return publish_limit_sentence(self.published, self.limits.publish)

    def _was_reloaded(self, look: TopicLook) -> bool:
        before = self.look
        if before is None:
            return False
        fell = (
            look.published is not None
            and before.published is not None
            and look.published < before.published
        )
        return (
            fell or self._was_gone or bool(look.owner and self.owner and look.owner != self.owner)
        )

    def _rates(self) -> Rates:
        """What all subscriptions got together over the last two periods."""
        each = [subscription.rates for subscription in self.subscriptions.values()]
        messages = [rate for rate, _ in each if rate is not None]
        size = [rate for _, rate in each if rate is not None]
        return (
            sum(messages) if each and len(messages) == len(each) else None,
            sum(size) if each and len(size) == len(each) else None,
        )


def _rate(first: int | None, last: int | None, elapsed_ns: int) -> float | None:
    if first is None or last is None or last < first or elapsed_ns <= 0:
        return None
    return (last - first) * NS_PER_S / elapsed_ns
