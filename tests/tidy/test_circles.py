"""Imports form no circles: none at run time, and for types no larger than a pair.

The graph is grimp's. A pair is two files that know each other's types, such as a registry and
what registers itself; a larger circle has no bottom to begin reading at.
"""

from __future__ import annotations

from collections.abc import Iterator

import grimp
import pytest

from tests.tidy.tree import report

CIRCLE_FILES_MAX = 2
PACKAGES = ("headgate", "pyspark_pulsar")


@pytest.fixture(scope="module")
def with_types() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


@pytest.fixture(scope="module")
def executed() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None, exclude_type_checking_imports=True)


def test_no_file_imports_itself_by_way_of_others(executed: grimp.ImportGraph) -> None:
    problems = [" <-> ".join(circle) for circle in _circles(executed)]
    assert not problems, report(problems)


def test_imports_for_types_close_no_circle_larger_than_a_pair(
    with_types: grimp.ImportGraph,
) -> None:
    problems = [
        " <-> ".join(circle) for circle in _circles(with_types) if len(circle) > CIRCLE_FILES_MAX
    ]
    assert not problems, report(problems)


def test_a_circle_is_found() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("b", "d")):
        graph.add_import(importer=importer, imported=imported)
    assert list(_circles(graph)) == [["b", "c"]]


def _circles(graph: grimp.ImportGraph) -> Iterator[list[str]]:
    """The modules that import each other, directly or not, in groups."""
    seen: set[str] = set()
    for module in sorted(graph.modules - {"headgate", "pyspark_pulsar"}):
        if module not in seen:
            circle = graph.find_upstream_modules(module) & graph.find_downstream_modules(module)
            seen |= circle
            if circle:
                yield sorted(circle | {module})
