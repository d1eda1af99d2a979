"""Queries are looked at before Spark starts."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.sql.statement import checked_statement, named_in


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM attribution;",
        "  -- a comment; with a semicolon\nwith a as (select 1) select * from a",
        "select 'insert; into', \"update\" from episodes",
        "SHOW TABLES",
        "/* a */ DESCRIBE attribution",
        "explain select 1",
        "FROM attribution SELECT topic",
        "(SELECT 1)",
    ],
)
def test_what_reads_may_run(text: str) -> None:
    assert checked_statement(text) == text.strip().removesuffix(";")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" ; ", "the query is empty"),
        ("select 1; select 2", "several statements; one is allowed"),
        ("DROP TABLE attribution", "DROP is not for this command, which only reads"),
        ("insert overwrite directory 'x' select 1", "INSERT is not for this command"),
        ("from episodes insert into x select 1", "INSERT is not for this command"),
        ("WITH a AS (SELECT 1) DELETE FROM b", "DELETE is not for this command"),
        ("set spark.x = 1", "SET is not for this command"),
    ],
)
def test_what_does_more_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        checked_statement(text)


def test_names_in_a_query() -> None:
    names = ["attribution", "episodes", "intervals"]
    assert named_in("select 'episodes' from Attribution -- intervals", names) == ["attribution"]
    assert named_in("SHOW TABLES", names) == names
