"""Sizes have a limit, because no single change ever looks like the one that made a file too big.

The offenders that are known stand in ``ratchet.toml`` and may only shrink.
"""

from __future__ import annotations

import ast
import gc
import statistics
import tomllib

from tests.tidy.tree import ROOT, functions, modules, project_files, report, written_modules

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
TEST_FILE_LINES_MAX = 900
SOURCE_MEDIAN_LINES_MAX = 200
SOURCE_P90_LINES_MAX = 450

RATCHET = tomllib.loads((ROOT / "tests/tidy/ratchet.toml").read_text())


def test_functions_are_short() -> None:
    sizes = {}
    parsed = {module.path: module.syntax for module in modules()}
    gc.disable()  # a tree has no cycles, and collections would search it amid its making
    try:
        for path in project_files():
            if path.suffix == ".py" and "_generated" not in path.parts:
                where = str(path.relative_to(ROOT))
                for name, node in functions(parsed.get(path) or ast.parse(path.read_text())):
                    sizes[f"{where}:{name}"] = (node.end_lineno or node.lineno) - node.lineno + 1
    finally:
        gc.enable()
    _hold(sizes, dict.fromkeys(sizes, FUNCTION_LINES_MAX), RATCHET["functions"])


def test_files_are_short() -> None:
    sizes, limits = {}, {}
    for path in project_files():
        if path.suffix in (".py", ".sh", ".js", ".css") and "_generated" not in path.parts:
            where = str(path.relative_to(ROOT))
            sizes[where] = len(path.read_text().splitlines())
            is_test = where.startswith("tests/")
            limits[where] = TEST_FILE_LINES_MAX if is_test else FILE_LINES_MAX
    _hold(sizes, limits, RATCHET["files"])


def test_most_source_files_are_small() -> None:
    sizes = sorted(
        len(module.text.splitlines()) for module in written_modules() if not module.is_package
    )
    assert statistics.median(sizes) <= SOURCE_MEDIAN_LINES_MAX
    assert sizes[len(sizes) * 9 // 10] <= SOURCE_P90_LINES_MAX


def _hold(sizes: dict[str, int], limits: dict[str, int], ratchet: dict[str, int]) -> None:
    """Hold every size to its limit, and every known offender to its last size exactly."""
    problems = [f"{name} is gone: take it out of ratchet.toml" for name in ratchet.keys() - sizes]
    for name, size in sizes.items():
        known = ratchet.get(name)
        if known is None and size > limits[name]:
            problems.append(f"{name} has {size} lines, {limits[name]} are allowed")
        elif known is not None and size > known:
            problems.append(f"{name} grew from {known} to {size} lines; it may only shrink")
        elif known is not None and size < known:
            problems.append(f"{name} shrank to {size} lines: say so in ratchet.toml ({known})")
    assert not problems, report(problems)
