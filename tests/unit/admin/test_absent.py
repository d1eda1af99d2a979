"""Families of routes that are absent: each is refused in words, and listed in the guide."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.admin.absent import ABSENT, AbsentFamily, absent_reason
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
            assert (answer.status, answer.reason) == (404, family.reason), path


def test_no_route_is_called_absent() -> None:
    for route in ROUTES:
        if route.path == LIST_BESIDE_TOPICS:
            continue
        assert not absent_reason(route.path.strip("/").split("/")), route.path


def test_a_path_of_none_is_no_resource(api: Ask) -> None:
    answer = api("GET", "/admin/v2/nonsense")
    assert (answer.status, answer.reason) == (404, "No such resource: /admin/v2/nonsense")


def test_any_number_of_segments_or_none() -> None:
    family = AbsentFamily("Things", ("/a/*/b/**", "/c"), "so it is")
    assert family.reason == "Things are not supported: so it is"
    assert [family.has(path.split("/")) for path in ("a/x/b", "a/x/b/1/2", "c")] == [True] * 3
    assert [family.has(path.split("/")) for path in ("a/b", "a/x/y", "c/d", "")] == [False] * 4


def test_the_guide_lists_them_all() -> None:
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| ")]
    listed = rows[2 : 2 + len(ABSENT)]
    expected = [
        f"| {family.name} | {' '.join(f'`{path}`' for path in family.paths)} | 404: {family.why} |"
        for family in ABSENT
    ]
    assert listed == expected
