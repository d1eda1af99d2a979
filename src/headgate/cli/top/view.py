"""The view of ``headgate top``: a table of backlogs, and the topic that the user opens."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Final

from rich.text import Text

from headgate.base.names import parse_topic
from headgate.cli.explain.command import topic_path
from headgate.cli.explain.printing import answer_text, reading_answer
from headgate.cli.live.poller import Answer
from headgate.cli.live.screen import Freshness
from headgate.cli.live.status import status_line
from headgate.cli.live.text_view import TextView
from headgate.cli.top.choices import Choices, after_key, chosen_rows
from headgate.cli.top.table import rows_that_fit, top_lines

KEYS: Final = "q quit  ↑↓ select  ⏎ open  s order  c cause  / text  p pause  ? help"
_TYPING: Final = "Type a part of a name, ⏎ to keep it, Esc to leave it"
_OPENED: Final = "q back   ↑↓ scroll   p pause"

_AROUND: Final = 24
"""Lines of a table around its rows, at most."""
_KEY_WIDTH: Final = 12
"""Characters before the meaning of a key."""
_HELP: Final = """\
Each row is a subscription with the cause of its backlog, the largest backlog first. \
The sentence below the table is about the selected row.

 ↑ ↓  j k   select a row; PgUp, PgDn, Home and End as well
 Enter      open the topic of the row: limits, producers, the account of time
 m b a g n  order by messages, bytes, age of the oldest message, growth, name
 s          the next order
 c          only the next cause; after the last one all
 /          only topics and subscriptions with this text in their names
 Esc        all rows again
 p          pause, and go on
 q          quit

The last hour: a bar is as high as the backlog was, in the colour of its cause. Without colours \
letters name the cause: c consumer, n no consumer, S T B limit of subscription, topic or broker, \
b broker, . no backlog. A ~ before the cause: it is worked out from counters, not measured.
"""


def _help_lines(width: int) -> Iterator[str]:
    for paragraph in _HELP.split("\n"):
        indent = " " * _KEY_WIDTH if paragraph.startswith(" ") else ""
        yield from wrap(paragraph, width, subsequent_indent=indent) or ("",)


class TopView:
    """The table, or over it the text of one topic."""

    def __init__(self, url: str, path: str, answer: Answer, *, is_drawn: bool) -> None:
        """``answer`` is the first one to ``path``, of the admin API at ``url``; ``is_drawn`` is
        whether the terminal has colours.

        Raises:
            ExplainError: the answer is of an older release.
        """
        self.choices = Choices()
        self._url = url
        self._path = path
        self._answer = answer
        self._is_drawn = is_drawn
        self._topic: TextView | None = None
        self._size = (80, 24)
        self.on_answer(answer)

    @property
    def path(self) -> str:
        """The topic's while one is open."""
        if self.choices.opened is not None:
            return topic_path(parse_topic(self.choices.opened[0]), per_partition=False)
        return self._path

    @property
    def is_paused(self) -> bool:
        """Whether the user paused it."""
        return self._topic.is_paused if self._topic else self.choices.is_paused

    @property
    def is_done(self) -> bool:
        """Whether the user quit."""
        return self.choices.is_done

    def on_answer(self, answer: Answer) -> None:
        """Take the answer about the table or the topic."""
        if self.choices.opened is None:
            with reading_answer(self._url):
                self._table(answer, *self._size, is_old=False)
            self._answer = answer
        elif self._topic is None:
            text_of = functools.partial(answer_text, self._url)
            text_of(answer, self._size[0])
            self._topic = TextView(self.path, answer, text_of, _OPENED)
        else:
            self._topic.on_answer(answer)

    def on_key(self, key: str) -> None:
        """Act on a key."""
        if self.choices.opened is None:
            rows = chosen_rows(self._answer["subscriptions"], self.choices)
            page = rows_that_fit(self._answer, self.choices, *self._size)
            self.choices = after_key(self.choices, key, rows, page)
        elif key in ("q", "escape", "backspace", "left"):
            self.choices = replace(self.choices, opened=None)
            self._topic = None
        elif self._topic is not None:
            self._topic.on_key(key)

    def lines(self, width: int, height: int, freshness: Freshness) -> Sequence[Text]:
        """The table, the topic or the help."""
        self._size = (width, height)
        if self._topic is not None:
            return self._topic.lines(width, height, freshness)
        if self.choices.shows_help:
            text = [Text(line) for line in _help_lines(width)][: height - 1]
            text += [Text()] * (height - 1 - len(text))
            return [*text, Text("any key goes back", "dim")]
        lines = self._table(self._answer, width, height - 1, is_old=bool(freshness.problem))
        keys = _TYPING if self.choices.is_typing else KEYS
        return [*lines, status_line(keys, freshness, width, is_paused=self.choices.is_paused)]

    def table(self, width: int) -> Sequence[Text]:
        """All rows, for output that is no screen."""
        rows = len(self._answer["subscriptions"])
        return [line for line in self._table(self._answer, width, rows + _AROUND, is_old=False)
                if line.plain.strip()]  # fmt: skip

    def _table(self, answer: Answer, width: int, height: int, *, is_old: bool) -> Sequence[Text]:
        rows = chosen_rows(answer["subscriptions"], self.choices)
        return top_lines(
            answer, rows, self.choices, width, height, is_drawn=self._is_drawn, is_old=is_old
        )
