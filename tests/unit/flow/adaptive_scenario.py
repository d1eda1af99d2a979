"""Scenario files of adaptive throttling: cycles, and the limit and the words after each.

A file is a list of blocks, separated by empty lines; lines with ``#`` before a block comment it:

    # what the reader should see
    cycles 2 publish=1000 memory=100%
    ----
      3 s: 750 msg/s and 750,000 B/s | activated: slowed to ...
      4 s: 500 msg/s and 500,000 B/s | changed: slowed further to ...

Commands:

    set [law=drain] [observe_only=yes] [NAME=NUMBER]    settings of flow/adaptive/cycle
    cycles N [publish=N] [drain=N] [memory=P%] [rule=RULE] [backlog=P%] [age=P%] [waited] [slowed]
        so many seconds with so many messages (of 1,000 B) published and bytes drained in each; of
        a quota of 12,000,000 B or an age limit of 100 s that part is taken. Memory asks by the rule
        ``share``, ``everybody`` or ``no_effect``
    let go
"""

from __future__ import annotations

from typing import Any, Final

from headgate.flow.adaptive.cycle import AdaptiveSettings, Decision, Law, MemoryRule
from headgate.flow.sentences.adaptive import decision_sentence, publish_limit_text
from tests.unit.flow.adaptive_driver import Driven

SEPARATOR: Final = "----"
SIZE_LIMIT: Final = 12_000_000
AGE_LIMIT_MS: Final = 100_000


class AdaptiveScenario:
    """Runs one file's commands against one topic."""

    def __init__(self) -> None:
        self._topic = Driven()
        self._second = 0

    def rewrite(self, text: str) -> str:
        """The same file with the answers of this code."""
        blocks = []
        for block in text.strip().split("\n\n"):
            lines = block.split("\n")
            if SEPARATOR in lines:
                lines = lines[: lines.index(SEPARATOR)]
            answers = [
                answer
                for line in lines
                if not line.startswith("#")
                for answer in self._answer(line.split())
            ]
            blocks.append("\n".join([*lines, SEPARATOR, *answers] if answers else lines))
        return "\n\n".join(blocks) + "\n"

    def _answer(self, words: list[str]) -> list[str]:
        if words[0] == "set":
            values = dict(word.split("=") for word in words[1:])
            self._topic.set(**{name: _setting(name, text) for name, text in values.items()})
            return []
        if words == ["let", "go"]:
            return [self._line(self._topic.control.end_now(self._topic.settings))]
        if words[0] != "cycles":
            raise ValueError(f"{words[0]} is no command")
        load = {name: value for word in words[2:] for name, value in _load(word).items()}
        lines = []
        for _ in range(int(words[1])):
            self._second += 1
            lines.append(self._line(self._topic.cycle(**load)))
        return lines

    def _line(self, decision: Decision | None) -> str:
        present = self._topic.present
        limit = "no limit" if present is None else publish_limit_text(present)
        if present is not None and self._topic.control.limit is None:
            limit = f"({limit})"
        told = f" | {decision.kind}: {decision_sentence(decision)}" if decision else ""
        return f"{self._second:3} s: {limit}{told}"


def _setting(name: str, text: str) -> Any:
    if name == "law":
        return Law(text)
    if name == "observe_only":
        return text == "yes"
    return type(getattr(AdaptiveSettings(), name))(text)


def _load(word: str) -> dict[str, Any]:
    name, _, text = word.partition("=")
    if name in ("waited", "slowed"):
        return {name: True}
    if name in ("publish", "drain"):
        return {{"publish": "published", "drain": "drained"}[name]: int(text)}
    if name == "rule":
        return {"rule": MemoryRule(text)}
    share = float(text.removesuffix("%")) / 100
    if name == "memory":
        return {"memory": share}
    if name == "backlog":
        return {"backlog_bytes": round(share * SIZE_LIMIT), "size_limit": SIZE_LIMIT}
    if name == "age":
        return {"age_ms": round(share * AGE_LIMIT_MS), "age_limit_ms": AGE_LIMIT_MS}
    raise ValueError(f"{name} is no part of a load")
