"""Joins of the pipeline are null-safe: a broker may have no cluster's name, a topic no partition.

Spark's, Arrow's and SQL's usual joins match no null with a null, and drop or empty such rows
without a word. Each of the two kinds of table has one function that joins.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.tidy.tree import ROOT, Module, report, written_modules

PIPELINE = ("headgate.pipeline", "headgate.demo")

JOINS = {
    "headgate.pipeline.steps.joins": "left_join, for DataFrames",
    "headgate.pipeline.kernels.null_safe_join": "joined_rows, for Arrow tables",
    "headgate.pipeline.backtest.job": "its key is the number of a grid point, which is never null",
}
"""Modules that call a join, each with the reason."""

_SQL = re.compile(r"\busing\s*\(", re.IGNORECASE)


def test_only_null_safe_joins() -> None:
    problems = [
        f"{module.where}:{line}: use left_join of steps.joins or joined_rows of "
        "kernels.null_safe_join: this join matches no null"
        for module in written_modules()
        if module.name.startswith(PIPELINE) and module.name not in JOINS
        for line in _joins(module.syntax)
    ]
    assert not problems, report(problems)


def test_the_allowed_modules_join() -> None:
    joining = {module.name for module in written_modules() if list(_joins(module.syntax))}
    assert set(JOINS) <= joining


def test_sql_compares_keys_with_is_not_distinct_from() -> None:
    texts = {path: path.read_text() for path in sorted((ROOT / "src").rglob("*.sql"))}
    texts |= {
        module.path: "\n".join(_strings(module))
        for module in written_modules()
        if module.name.startswith(PIPELINE)
    }
    problems = [
        f"{path.relative_to(ROOT)}: USING matches no null: join on IS NOT DISTINCT FROM"
        for path, text in texts.items()
        if _SQL.search(text)
    ]
    assert not problems, report(problems)


def test_a_join_is_told_from_other_functions_of_that_name() -> None:
    code = '", ".join(names)\nthread.join(5)\nrows.join(more, "key")\nrows.join(more, on="key")\n'
    assert list(_joins(ast.parse(f"{code}left.merge(right)"))) == [3, 4, 5]


def _joins(syntax: ast.AST) -> Iterator[int]:
    """The lines that join tables: ``join`` of a text or a thread has one argument at most."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            arguments = len(node.args) + len(node.keywords)
            if node.func.attr == "merge" or (node.func.attr == "join" and arguments > 1):
                yield node.lineno


def _strings(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
