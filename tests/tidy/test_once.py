"""One module declares what several share: two declarations of one constant drift apart."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.tidy.tree import report, written_modules

TWO_PROGRAMS = {
    "CLASSES": "pyspark-pulsar imports nothing of Headgate",
    "COUNT_MAX": "the command line refuses what the broker would refuse",
    "DISCOVERY": "pyspark-pulsar imports nothing of Headgate",
    "EARLIEST": "pyspark-pulsar imports nothing of Headgate",
    "EXPLAIN_PATH": "the command line asks what broker and agent answer",
    "HIDE_TRACEBACK": "pyspark-pulsar imports nothing of Headgate",
    "INT32_MAX": "pyspark-pulsar imports nothing of Headgate",
    "INT64_MAX": "pyspark-pulsar imports nothing of Headgate",
    "ISSUER_TIMEOUT_S": "pyspark-pulsar imports nothing of Headgate",
    "JSON": "the command line and the broker both send it",
    "LATEST": "pyspark-pulsar imports nothing of Headgate",
    "LIFE_MAX_S": "pyspark-pulsar imports nothing of Headgate",
    "LIFE_UNKNOWN_S": "pyspark-pulsar imports nothing of Headgate",
    "LIFE_USED": "pyspark-pulsar imports nothing of Headgate",
    "LOOPBACK": "pyspark-pulsar imports nothing of Headgate",
    "MAGIC_AND_WORD": "pyspark-pulsar imports nothing of Headgate",
    "NOTHING_HOLDS": "the command line recognizes a broker's sentence",
    "REASON_BYTES_MAX": "pyspark-pulsar imports nothing of Headgate",
    "REST_S": "pyspark-pulsar imports nothing of Headgate",
    "SHARE_SHOWN_MIN": "the command line shows shares without the laws",
}
"""Constants on both sides of a protocol or of two distributions, with the reason."""

ALIKE_BY_CHANCE = {
    "GAP": "layout of one view",
    "INDENT": "layout of one view",
    "QUIET_NS": "the pace of one log",
    "SLICE_PARTITIONS": "measured where it stands",
    "TIMEOUT_S": "what one kind of request may take",
    "WIDTH_MAX": "layout of one view",
    "WIDTH_MIN": "layout of one view",
}
"""Constants that have a name and a value in common and no meaning, with what they mean."""


def test_no_two_modules_declare_the_same_constant() -> None:
    problems = [
        f"{name} = {value} stands in {', '.join(found)}: declare it once, or say in {__name__} why"
        for (name, value), found in _declared_twice().items()
        if name not in TWO_PROGRAMS and name not in ALIKE_BY_CHANCE
    ]
    assert not problems, report(problems)


def test_every_exception_is_still_one() -> None:
    gone = {*TWO_PROGRAMS, *ALIKE_BY_CHANCE} - {name for name, _ in _declared_twice()}
    assert not gone, report([f"{name} is declared once now: remove the exception" for name in gone])


def test_a_constant_is_found_whoever_may_use_it() -> None:
    syntax = ast.parse("_KEY: Final = ('a', 'b')\nKEY = ('a', 'b')\nkey = ()\nOTHER: int\n")
    assert list(_constants(syntax)) == [("KEY", "('a', 'b')")] * 2


def _declared_twice() -> dict[tuple[str, str], list[str]]:
    """Modules by the constant, a name and a value, that they all declare."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in written_modules():
        for name, value in _constants(module.syntax):
            if not value.startswith("TypeVar("):
                places[name, value].append(module.where)
    return {constant: found for constant, found in places.items() if len(found) > 1}


def _constants(syntax: ast.Module) -> Iterator[tuple[str, str]]:
    """Constants of a module, without a leading underscore, and what they are."""
    for node in syntax.body:
        if isinstance(node, ast.AnnAssign):
            target = node.target
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        else:
            continue
        if isinstance(target, ast.Name) and target.id.isupper() and node.value is not None:
            yield target.id.strip("_"), ast.unparse(node.value)
