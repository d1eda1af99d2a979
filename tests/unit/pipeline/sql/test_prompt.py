"""The prompt completes names, keeps the history and outlives faulty queries."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from headgate.base.errors import InputError
from headgate.pipeline.options import FolderOptions, SqlOptions
from headgate.pipeline.sql.prompt import NameCompleter, ask_for_queries, history_path, is_whole

OPTIONS = SqlOptions(FolderOptions("tables"))


class FakeQueries:
    """Two tables; a query that names none fails, and one with ``slow`` is interrupted."""

    names = ("attribution", "episodes")

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.cancelled = 0

    def columns(self, name: str) -> list[str]:
        return {"attribution": ["topic", "verdict"], "episodes": ["topic", "cause"]}[name]

    def write(self, text: str, options: SqlOptions, out: TextIO, err: TextIO) -> int:
        self.ran.append(text)
        if "slow" in text:
            raise KeyboardInterrupt
        if not any(name in text for name in self.names):
            raise InputError("there is no table")
        out.write("rows\n")
        return 1

    def cancel(self) -> None:
        self.cancelled += 1


def asked(queries: FakeQueries, *inputs: str | BaseException) -> tuple[str, str]:
    """The rows and messages of a session with these inputs."""
    waiting: Iterator[str | BaseException] = iter(inputs)

    def read() -> str:
        found = next(waiting, EOFError())
        if isinstance(found, BaseException):
            raise found
        return found

    out, err = io.StringIO(), io.StringIO()
    ask_for_queries(queries, OPTIONS, out, err, read)
    return out.getvalue(), err.getvalue()


def test_queries_run_until_the_user_leaves() -> None:
    queries = FakeQueries()
    out, err = asked(queries, "from episodes;", "", " ; ", KeyboardInterrupt(), "exit", "never;")
    assert queries.ran == ["from episodes;"]
    assert out == "rows\n"
    assert err.startswith("A query ends with ;")


def test_a_faulty_or_interrupted_query_ends_nothing() -> None:
    queries = FakeQueries()
    out, err = asked(queries, "nonsense;", "slow;", "from attribution;")
    assert out == "rows\n"
    assert err.split("\n")[1:] == ["Error: there is no table", "Interrupted.", ""]
    assert queries.cancelled == 1


def completed(text: str) -> list[str]:
    found = NameCompleter(FakeQueries()).get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("select * from ep", ["episodes"]),
        ("SELECT * FROM EPISODES WHERE cau", ["cause"]),
        ("select v", []),
        ("select from attribution where v", ["verdict"]),
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("select ", []),
        ("from episodes", []),
    ],
)
def test_completion(text: str, names: list[str]) -> None:
    assert completed(text) == names


@pytest.mark.parametrize(
    ("text", "whole"),
    [("select 1", False), ("select 1 ; ", True), ("", True), ("exit", True), ("\\q", True)],
)
def test_where_a_query_ends(text: str, whole: bool) -> None:
    assert is_whole(text) is whole


def test_the_place_of_the_history() -> None:
    home = history_path({"HOME": "/h"})
    assert home == Path("/h/.local/state/headgate/sql_history")
    assert history_path({"XDG_STATE_HOME": "/s"}) == Path("/s/headgate/sql_history")
    assert history_path({}) is None


@contextmanager
def terminal(text: str) -> Iterator[Callable[[], None]]:
    """A terminal on which somebody types."""
    with create_pipe_input() as typed, create_app_session(input=typed, output=DummyOutput()):
        typed.send_text(text)
        yield typed.close


def test_lines_of_a_terminal_make_one_query_that_the_history_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    queries = FakeQueries()
    with terminal("select 1\nfrom episodes;\nexit\n"):
        ask_for_queries(queries, OPTIONS, io.StringIO(), io.StringIO())
    assert queries.ran == ["select 1\nfrom episodes;"]
    file = tmp_path / "headgate/sql_history"
    assert "from episodes;" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    # A folder that cannot be made costs the history and not the prompt.
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    with terminal("from episodes;\nexit\n"):
        ask_for_queries(queries, OPTIONS, io.StringIO(), io.StringIO())
    assert queries.ran[1:] == ["from episodes;"]
