"""The prompt of ``headgate pipeline sql``: queries by hand, with completion and history."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from headgate.base.errors import HeadgateError
from headgate.pipeline.options import SqlOptions
from headgate.pipeline.sql.statement import WORD

KEYWORDS: Final = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT JOIN", "ON",
    "USING", "WITH", "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE",
    "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT", "UNION ALL", "DESC", "ASC", "OVER",
    "PARTITION BY", "COUNT(*)", "SUM(", "AVG(", "MIN(", "MAX(", "SHOW TABLES", "DESCRIBE",
    "EXPLAIN", "INTERVAL",
)  # fmt: skip
"""Words that the prompt completes beside names."""

ENDINGS: Final = ("exit", "quit", "\\q")
GREETING: Final = (
    "A query ends with ; and Tab completes names. SHOW TABLES; lists the tables, exit leaves.\n"
)


class Queries(Protocol):
    """What the prompt needs of the queries of a folder."""

    @property
    def names(self) -> Sequence[str]:
        """Names of tables and views."""

    def columns(self, name: str) -> Sequence[str]:
        """The columns of one of them."""

    def write(self, text: str, options: SqlOptions, out: TextIO, err: TextIO) -> int:
        """Write the rows of a query."""

    def cancel(self) -> None:
        """End the work of a query that was interrupted."""


class NameCompleter(Completer):
    """Completes keywords, names of tables, and columns of the tables that the text names."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """What the word before the cursor may become."""
        del complete_event
        word = document.get_word_before_cursor(pattern=WORD)
        if not word:
            return
        words = set(WORD.findall(document.text.lower()))
        names = list(self._queries.names)
        columns = [
            column for name in names if name in words for column in self._queries.columns(name)
        ]
        keywords = [each.lower() for each in KEYWORDS] if word.islower() else list(KEYWORDS)
        for name in dict.fromkeys([*columns, *names, *keywords]):
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, start_position=-len(word))


def is_whole(text: str) -> bool:
    """Whether Enter ends the input: after a semicolon, without text, or with a word that leaves."""
    plain = text.strip()
    return not plain or plain.endswith(";") or plain in ENDINGS


def history_path(environment: Mapping[str, str]) -> Path | None:
    """The file of earlier queries, in the user's folder for state; None without a home."""
    state = environment.get("XDG_STATE_HOME")
    home = environment.get("HOME")
    if not state and not home:
        return None
    folder = Path(state) if state else Path(str(home), ".local", "state")
    return folder / "headgate" / "sql_history"


def _history(path: Path | None) -> History:
    """The file's history, or one of this session where the file cannot be used."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A query may name topics that are nobody else's concern.
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _session_input(queries: Queries) -> Callable[[], str]:
    session: PromptSession[str] = PromptSession(
        "sql> ",
        completer=NameCompleter(queries),
        history=_history(history_path(os.environ)),
        prompt_continuation="  -> ",
    )
    session.multiline = Condition(lambda: not is_whole(session.default_buffer.text))
    return session.prompt


def ask_for_queries(
    queries: Queries,
    options: SqlOptions,
    out: TextIO,
    err: TextIO,
    read: Callable[[], str] | None = None,
) -> None:
    """Ask for queries and write their rows, until the user leaves. A faulty query ends nothing.

    Ctrl-C drops the input, or ends the running query; Ctrl-D leaves. ``read`` gives the next
    input, for tests; by default the terminal does.
    """
    read = _session_input(queries) if read is None else read
    err.write(GREETING)
    while True:
        try:
            text = read().strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text in ENDINGS:
            return
        if text.strip("; \n"):
            _run(queries, text, options, out, err)


def _run(queries: Queries, text: str, options: SqlOptions, out: TextIO, err: TextIO) -> None:
    try:
        queries.write(text, options, out, err)
    except KeyboardInterrupt:
        queries.cancel()
        err.write("Interrupted.\n")
    except HeadgateError as error:
        err.write(f"Error: {error}\n")
