"""Scenario files: commands and what they answered, for a reader to see a limiter at work.

A file is a list of blocks, separated by empty lines; lines with ``#`` before a block comment it:

    # what the reader should see
    run 3 s
    ----
    answer

Commands (amounts per period; names are ``topic`` or ``topic/subscription`` or ``broker``):

    limit NAME [messages=N] [bytes=N] [period_s=N] | limit NAME none
    want NAME entries=N|endless [messages=N] [bytes=N]     per entry
    leave NAME
    run N s [each N ms]       a line for each second (or step): messages sent, by whom, causes
    run N s quietly           only the sum
    budget NAME               window, debt and waiters now
    events NAME               throttled events so far
"""

from __future__ import annotations

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.limits import DispatchLimit
from tests.unit.flow.driver import START_NS, Driver, Sender

SEPARATOR = "----"


class Scenario:
    """Runs one file's commands against one gate tree."""

    def __init__(self) -> None:
        self.driver = Driver()

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
        if words != ("none",):
            limit = DispatchLimit(
                values.get("messages"),
                values.get("bytes"),
                values.get("period_s", 1) * NS_PER_S,
            )
        self._node(name).set_limit(limit, self.driver.now_ns)
        return ""

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
            self.driver.run_until(end_ns)
            return self._line(start_ns, end_ns)
        step_ns = int(words[1]) * NS_PER_MS if words else NS_PER_S
        lines = []
        while self.driver.now_ns < end_ns:
            start_ns = self.driver.now_ns
            self.driver.run_until(min(end_ns, start_ns + step_ns))
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
        gate.settle(self.driver.now_ns)
        return " ".join(
            f"{level}={messages}/{size_bytes}"
            for level, (messages, size_bytes) in zip(
                ("subscription", "topic", "broker"), gate.throttled_events, strict=True
            )
        )
