"""The log lines of the adaptive controller, bounded in number.

Each minute a topic gets at most one line of each kind, and all topics together :data:`LINES_MAX`;
the last line of a minute counts those that were left out. If a topic's last line is out of date by
then, the next minute begins with a new line. A new minute begins at once when the mode changes
or the controller lifts all limits, so that the log shows which limits begin and end then.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from headgate.base.units import MIB, NS_PER_MINUTE, NS_PER_MS, NS_PER_S
from headgate.engine.topic import Topic
from headgate.flow.adaptive.cycle import (
    AdaptiveSettings,
    Decision,
    DecisionKind,
    MemoryRule,
    PublishLimit,
)
from headgate.flow.adaptive.memory_share import NO_EFFECT_S, UNATTRIBUTED_CYCLES
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.sentences.adaptive import decision_sentence, publish_limit_text
from headgate.flow.sentences.backlog import limit_text

logger = logging.getLogger("headgate.adaptive")

QUIET_NS: Final = NS_PER_MINUTE
LINES_MAX: Final = 100
"""Lines in a minute, about all topics."""

TAG: Final = "[AdaptiveThrottle]"
_NO_TOPIC: Final = -1
"""The topic number of lines about all topics."""


class _UnloggedDecision(NamedTuple):
    """A decision that has no log line yet."""

    topic: Topic
    decision: Decision
    at_ns: int


class AdaptiveLogger:
    """Writes the lines of one controller."""

    def __init__(self) -> None:
        self._written: dict[tuple[int, str], None] = {}
        """The topic number and the kind of each line in this minute."""
        self._last_kinds: dict[int, DecisionKind] = {}
        """The kind of each topic's last line in this minute."""
        self._unlogged: dict[int, _UnloggedDecision] = {}
        """Each topic's last decision that has no line yet."""
        self._since_ns: int | None = None
        self._left_out = 0
        self._failure_ns: int | None = None
        self._failures_since = 0

    def enabled(self, settings: AdaptiveSettings, memory_limit_bytes: int) -> None:
        """The controller starts."""
        memory_mib = f"{memory_limit_bytes / MIB:,.0f}"
        logger.info("%s ENABLED %s memoryLimit=%s MiB", TAG, _mode(settings), memory_mib)

    def settings_changed(self, settings: AdaptiveSettings) -> None:
        """Changed settings are in force."""
        logger.info("%s SETTINGS %s", TAG, _mode(settings))

    def begin_minute(self) -> None:
        """Begin a new minute: the mode changed, or the controller lifted all limits."""
        self._written.clear()
        self._last_kinds.clear()

    def decided(self, topic: Topic, decision: Decision, now_ns: int) -> None:
        """A limit began or ended, or would have in observe-only mode. Steps in between are logged
        at debug level."""
        kind = decision.kind
        if kind is DecisionKind.CHANGED:
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("%s topic=%s: %s", TAG, topic.name, decision_sentence(decision))
            return
        self._began_or_ended(topic, decision, now_ns, now_ns)

    def _began_or_ended(self, topic: Topic, decision: Decision, at_ns: int, now_ns: int) -> None:
        kind, number = decision.kind, topic.log.number
        if decision.observe_only:
            word = "activate" if kind is DecisionKind.ACTIVATED else "deactivate"
            what = f"OBSERVE-ONLY would-{word}"
        else:
            what = kind.name
        if not self._may_write(number, what, now_ns):
            if number in self._unlogged or len(self._unlogged) < LINES_MAX:
                self._unlogged[number] = _UnloggedDecision(topic, decision, at_ns)
            return
        self._unlogged.pop(number, None)
        self._last_kinds[number] = kind
        inputs = decision.inputs
        if kind is DecisionKind.ACTIVATED:
            figures = (
                f"memoryPressure={_pressure(inputs.memory_pressure)} "
                f"backlogPressure={_pressure(inputs.backlog_pressure)}"
            )
        else:
            figures = f"naturalMsgRate={inputs.natural_messages_per_s or 0:.1f}/s"
        sentence = decision_sentence(decision)
        if at_ns < now_ns:
            sentence += f" ({(now_ns - at_ns) // NS_PER_S} s ago)"
        logger.info("%s %s topic=%s %s: %s", TAG, what, topic.name, figures, sentence)

    def both_limits(
        self, topic: Topic, set_limit: str, adaptive: PublishLimit, applying: str, now_ns: int
    ) -> None:
        """A topic has a set publish limit beside the adaptive one. ``set_limit`` and
        ``applying`` are texts of :func:`set_limit_text` and :func:`applying_text`."""
        if self._may_write(topic.log.number, f"BOTH-LIMITS {applying}", now_ns):
            logger.info(
                "%s BOTH-LIMITS topic=%s adaptive=%s set=%s: the tighter one applies, %s",
                TAG, topic.name, publish_limit_text(adaptive), set_limit, applying,
            )  # fmt: skip

    def rule_changed(
        self,
        rule: MemoryRule,
        settings: AdaptiveSettings,
        used_bytes: int,
        limit_bytes: int,
        now_ns: int,
    ) -> None:
        """The controller begins to slow all publishing topics, or stops doing so."""
        if rule is MemoryRule.EVERYBODY:
            what = "EVERYBODY"
            why = (
                f"memory has been at full pressure for {UNATTRIBUTED_CYCLES} cycles and no topic"
                " stands out as the cause, so all topics that publish are slowed"
            )
            if settings.observe_only:
                what = "OBSERVE-ONLY would-slow-everybody"
                why = why.replace("are slowed", "would be slowed")
        else:
            what = "NO-EFFECT"
            why = (
                f"slowing all topics for {NO_EFFECT_S} s did not bring memory down, so they are"
                " released until the pressure has ended once; look for what else fills the memory"
            )
        if self._may_write(_NO_TOPIC, what, now_ns):
            used = (
                f"memoryUsed={used_bytes / MIB:,.0f} MiB memoryLimit={limit_bytes / MIB:,.0f} MiB"
            )
            logger.warning("%s %s %s: %s", TAG, what, used, why)

    def failed(self, error: Exception, now_ns: int) -> None:
        """A cycle failed. At most one line a minute, with a traceback and a count."""
        self._failures_since += 1
        if self._failure_ns is not None and now_ns - self._failure_ns < QUIET_NS:
            return
        self._failure_ns = now_ns
        count, self._failures_since = self._failures_since, 0
        again = f" ({count} times since the last line)" if count > 1 else ""
        logger.error("%s Evaluation cycle failed%s: %s", TAG, again, error, exc_info=error)

    def limits_outlived(self, count: int, seconds: float) -> None:
        """The controller lifted ``count`` limits, because no cycle completed for ``seconds``."""
        logger.error(
            "%s RELEASED %d topics: no evaluation cycle completed for %.0f s", TAG, count, seconds
        )

    def cycle_ended(self, now_ns: int) -> None:
        """If the minute is over, log how many lines it left out, and write the due ones."""
        if self._since_ns is None or now_ns - self._since_ns < QUIET_NS:
            return
        due = [
            each
            for number, each in self._unlogged.items()
            if self._last_kinds.get(number) is not each.decision.kind
        ]
        left_out = self._left_out - len(due)
        if left_out:
            logger.info("%s %d more lines in the last minute were left out", TAG, left_out)
        self._since_ns, self._left_out = None, 0
        self._unlogged.clear()
        self.begin_minute()
        for each in due:
            self._began_or_ended(each.topic, each.decision, each.at_ns, now_ns)

    def _may_write(self, number: int, what: str, now_ns: int) -> bool:
        if self._since_ns is None:
            self._since_ns = now_ns
        if (number, what) in self._written or len(self._written) >= LINES_MAX:
            self._left_out += 1
            return False
        self._written[number, what] = None
        return True


def set_limit_text(effective: EffectiveLimit) -> str:
    """A limit that is set, with its source: ``100 msg/s and 1,000 B/s (topic policy)``."""
    limit = effective.limit
    if limit is None:
        return "none"
    dimensions = [each for each in Dimension if limit.amount(each) is not None]
    text = " and ".join(limit_text(limit, dimension) for dimension in dimensions)
    return f"{text} ({effective.source})"


def applying_text(effective: EffectiveLimit) -> str:
    """Which source limits which dimension: ``topic policy in messages, adaptive controller in
    bytes``."""
    found: dict[str, list[str]] = {}
    for dimension in Dimension:
        if effective.limit is not None and effective.limit.amount(dimension) is not None:
            found.setdefault(effective.source_of(dimension), []).append(dimension.name.lower())
    return ", ".join(f"{source} in {' and '.join(names)}" for source, names in found.items())


def _mode(settings: AdaptiveSettings) -> str:
    mode = "observe-only" if settings.observe_only else "live"
    return f"mode={mode} law={settings.law} interval={settings.interval_ns // NS_PER_MS} ms"


def _pressure(value: float) -> str:
    """``0``, ``.43`` or ``1.00``, so that ``memoryPressure=[^0]`` matches any pressure."""
    return f"{value:.2f}".removeprefix("0") if value > 0 else "0"
