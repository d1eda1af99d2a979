"""Families of routes that are absent: each is refused in words, and listed in the guide."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.admin.absent import ABSENT, AbsentFamily, refusal_of
from headgate.admin.table import ROUTES
from tests.unit.admin.conftest import Ask

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "admin-coverage.md"
LIST_BESIDE_TOPICS = "/admin/v2/non-persistent/{tenant}/{namespace}/partitioned"
"""A topic may have that name; Pulsar's server prefers the list, too."""
METHODS = ("GET", "POST", "PUT", "DELETE")


def examples(family: AbsentFamily) -> list[str]:
    return [path.replace("/**", "/more").replace("*", "x") for path in family.paths]


@pytest.mark.parametrize("family", ABSENT, ids=[family.name for family in ABSENT])
def test_each_is_refused_in_words(api: Ask, family: AbsentFamily) -> None:
    for path in examples(family):
        for method in METHODS:
            answer = api(method, path)
            assert (answer.status, answer.reason) == (family.status, family.reason), path
    assert "ot supported" in family.reason


def test_no_route_is_called_absent() -> None:
    for route in ROUTES:
        if route.path == LIST_BESIDE_TOPICS:
            continue
        segments = route.path.strip("/").split("/")
        assert refusal_of(route.path, segments).reason.startswith("No such resource"), route.path


@pytest.mark.parametrize("path", ["", "admin", "admin/v2", "admin/v3", "x/v3/functions", "metrics"])
def test_short_and_other_paths_are_unknown(path: str) -> None:
    refusal = refusal_of(f"/{path}", path.split("/"))
    assert (refusal.status, refusal.reason) == (404, f"No such resource: /{path}")


def test_any_number_of_segments_or_none() -> None:
    family = AbsentFamily("things", ("/a/*/b/**", "/c"), "Things are not supported")
    assert family.status == 405
    assert [family.has(path.split("/")) for path in ("a/x/b", "a/x/b/1/2", "c")] == [True] * 3
    assert [family.has(path.split("/")) for path in ("a/b", "a/x/y", "c/d", "")] == [False] * 4


def test_the_guide_lists_them_all() -> None:
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| ")]
    listed = rows[2 : 2 + len(ABSENT)]
    expected = [
        f"| {family.name} | {' '.join(f'`{path}`' for path in family.paths)} | {family.status} "
        f"| `{family.reason}` |"
        for family in ABSENT
    ]
    assert listed == expected
