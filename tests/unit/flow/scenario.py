"""Scenario files: commands and what they answered, for a reader to see a limiter at work.

A file is a list of blocks, separated by empty lines; lines with ``#`` before a block comment it:

    # what the reader should see
    run 3 s
    ----
    answer

Commands (amounts per period; names are ``topic`` or ``topic/subscription`` or ``broker``):

    limit NAME [messages=N] [bytes=N] [period_s=N] [relative] | limit NAME none
    publish TOPIC N/s         what relative limits of the topic and its subscriptions follow
    want NAME entries=N|endless [messages=N] [bytes=N]     per entry
    leave NAME
    run N s [each N ms]       a line for each second (or step): messages sent, by whom, causes
    run N s quietly           only the sum
    budget NAME               window, debt and waiters now
    events NAME               throttled events so far: level=messages/bytes
    held NAME                 messages and bytes held back so far
    spare NAME yes|no         no limit applies to it (any more)
    set LEVEL PLACE ...       a policy (messages=N bytes=N period_s=N relative unlimited, or none)
                              of a PLACE: subscription, topic, namespace or broker
    effective LEVEL           which limit is in force on that level, and where it is set
"""

from __future__ import annotations

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.limits.precedence import DISPATCH_KEYS, RatePolicy, effective_limit
from headgate.flow.limits.rate_limit import Dimension, Level, PerSecond, RateLimit
from headgate.flow.limits.relative import SAMPLE_NS, PublishRate
from headgate.flow.sentences.backlog import limit_text
from tests.unit.flow.driver import START_NS, Driver, Sender

SEPARATOR = "----"
LEVELS = ("subscription", "topic", "broker")


class Scenario:
    """Runs one file's commands against one gate tree."""

    def __init__(self) -> None:
        self.driver = Driver()
        self._relative: dict[str, RateLimit] = {}
        self._published: dict[str, tuple[int, PublishRate]] = {}
        self._counts: dict[str, int] = {}
        self._policies: dict[str, dict[str, RatePolicy]] = {}

    def rewrite(self, text: str) -> str:
        """The same file with the answers of this code."""
        blocks = []
        for block in text.strip().split("\n\n"):
            lines = block.split("\n")
            if SEPARATOR in lines:
                lines = lines[: lines.index(SEPARATOR)]
            answers = [self.answer(line) for line in lines if not line.startswith("#")]
            answer = "\n".join(filter(None, answers))
            blocks.append("\n".join(lines) + (f"\n{SEPARATOR}\n{answer}" if answer else ""))
        return "\n\n".join(blocks) + "\n"

    def answer(self, line: str) -> str:
        command, *words = line.split()
        handler = getattr(self, f"_{command}", None)
        assert handler is not None, f"unknown command in {line!r}"
        return str(handler(*words))

    def _node(self, name: str):  # type: ignore[no-untyped-def]  # one of three kinds of gate
        if name == "broker":
            return self.driver.broker
        return self.driver.sender(name).gate if "/" in name else self.driver.topic(name)

    def _limit(self, name: str, *words: str) -> str:
        values = {key: int(value) for key, _, value in (w.partition("=") for w in words) if value}
        limit = None
        self._relative.pop(name, None)
        if words != ("none",):
            limit = RateLimit(
                values.get("messages"),
                values.get("bytes"),
                values.get("period_s", 1) * NS_PER_S,
                relative="relative" in words,
            )
        if limit is not None and limit.relative:
            self._relative[name] = limit
            self._follow(name)
        else:
            self._node(name).set_limit(limit, self.driver.now_ns)
        return ""

    def _publish(self, topic: str, rate: str) -> str:
        count = self._counts.setdefault(topic, 0)
        followed = self._published.get(topic)
        follower = followed[1] if followed else PublishRate((count,), self.driver.now_ns)
        self._published[topic] = int(rate.removesuffix("/s")), follower
        return ""

    def _follow(self, name: str) -> None:
        """Put in force what a relative limit amounts to now."""
        topic, _, subscription = name.partition("/")
        messages = self._published[topic][1].per_second[0] if topic in self._published else 0.0
        if not subscription:
            owners = [s for s in self.driver.senders if s.startswith(f"{topic}/")]
            messages *= max(1, len(owners))
        limit = self._relative[name].above(PerSecond(messages, 0.0))
        self._node(name).set_limit(limit, self.driver.now_ns)

    def _advance(self, end_ns: int) -> None:
        """Run, sampling publish rates as an engine does."""
        while self._published and self.driver.now_ns + SAMPLE_NS <= end_ns:
            self.driver.run_until(self.driver.now_ns + SAMPLE_NS)
            for topic, (per_s, rate) in self._published.items():
                self._counts[topic] += per_s * SAMPLE_NS // NS_PER_S
                rate.sample((self._counts[topic],), self.driver.now_ns)
            for name in self._relative:
                self._follow(name)
        self.driver.run_until(end_ns)

    def _spare(self, name: str, yes: str) -> str:
        self.driver.sender(name).gate.set_exempt(yes == "yes", self.driver.now_ns)
        return ""

    def _held(self, name: str) -> str:
        counts = self.driver.sender(name).held_back.counts
        return " ".join(
            f"{level}={messages}/{size}"
            for level, (messages, size) in zip(LEVELS, counts, strict=True)
        )

    def _set(self, level: str, place: str, *words: str) -> str:
        values = {key: int(value) for key, _, value in (w.partition("=") for w in words) if value}
        policies = self._policies.setdefault(level, {})
        policies.pop(place, None)
        if words != ("none",):
            policies[place] = RatePolicy(
                **values, relative="relative" in words, unlimited="unlimited" in words
            )
        return ""

    def _effective(self, level: str) -> str:
        policies = self._policies.get(level, {})
        settings = policies.get("broker", RatePolicy())
        found = effective_limit(
            DISPATCH_KEYS[Level[level.upper()]],
            subscription_policy=policies.get("subscription"),
            topic_policy=policies.get("topic"),
            namespace_policy=policies.get("namespace"),
            namespace="acme/ns",
            broker_messages=settings.messages,
            broker_bytes=settings.bytes,
            broker_relative=settings.relative,
        )
        if found.limit is None:
            return f"unlimited: {found.source}" if found.source else "no limit: nothing is set"
        texts = [limit_text(found.limit, d) for d in Dimension if found.limit.amount(d)]
        more = " above the publish rate" if found.limit.relative else ""
        return f"{' and '.join(texts)}{more}: {found.source}"

    def _want(self, name: str, *words: str) -> str:
        values = dict(word.split("=") for word in words)
        wanted = None if values["entries"] == "endless" else int(values["entries"])
        self.driver.sender(
            name,
            wanted=wanted,
            messages=int(values.get("messages", 1)),
            size_bytes=int(values.get("bytes", 100)),
        )
        return ""

    def _leave(self, name: str) -> str:
        sender = self.driver.sender(name, wanted=0)
        sender.gate.leave(self.driver.now_ns)
        return ""

    def _run(self, amount: str, unit: str, *words: str) -> str:
        end_ns = self.driver.now_ns + int(amount) * (NS_PER_S if unit == "s" else NS_PER_MS)
        start_ns = self.driver.now_ns
        if words == ("quietly",):
            self._advance(end_ns)
            return self._line(start_ns, end_ns)
        step_ns = int(words[1]) * NS_PER_MS if words else NS_PER_S
        lines = []
        while self.driver.now_ns < end_ns:
            start_ns = self.driver.now_ns
            self._advance(min(end_ns, start_ns + step_ns))
            lines.append(self._line(start_ns, self.driver.now_ns))
        return "\n".join(lines)

    def _line(self, start_ns: int, end_ns: int) -> str:
        parts = []
        total = 0
        for name, sender in self.driver.senders.items():
            sent = sender.messages_between(start_ns, end_ns)
            total += sent
            parts.append(f"{name} {sent}{self._wait(sender)}")
        at = f"{(end_ns - START_NS) / NS_PER_S:.3f}".rstrip("0").rstrip(".")
        for name in self._relative:
            (budget,) = self._node(name).budgets
            parts.append(f"limit of {name}: {budget.limit}")
        return f"{at:>5} s: {total:>5} | " + " | ".join(parts)

    def _wait(self, sender: Sender) -> str:
        cause = sender.gate.cause(self.driver.now_ns)
        if cause is None:
            return ""
        for_ms = -((self.driver.now_ns - cause.release_at_ns) // NS_PER_MS)
        return f" ({cause.level.name.lower()} {cause.dimension.name.lower()}, {for_ms} ms)"

    def _budget(self, name: str) -> str:
        figures = self._node(name).statistics(self.driver.now_ns)
        lines = [
            f"{b.dimension.name.lower()}: {b.delivered_in_window} of {b.limit} in the window,"
            f" debt {b.debt}, granted {b.granted}"
            for b in figures.budgets
        ]
        lines.append(f"waiters: {figures.waiters}, at most {figures.waiters_max}")
        return "\n".join(lines)

    def _events(self, name: str) -> str:
        gate = self.driver.sender(name).gate
        gate.count_until(self.driver.now_ns)
        return " ".join(
            f"{level}={messages}/{size_bytes}"
            for level, (messages, size_bytes) in zip(LEVELS, gate.throttled_events, strict=True)
        )
