"""``./dev lint`` and ``./dev format``: ruff over the tree, mypy over what is shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from devkit.paths import ROOT
from devkit.processes import shown

BUDGET_S: Final = 15
"""Of all checks together on two quiet cores, with what mypy keeps from one run to the next."""
LIMIT_S: Final = 600
"""Of one check; from nothing, mypy takes a minute or two."""


def lint_commands(python: Path) -> list[list[str]]:
    """The checks, in the order in which they run."""
    return [
        [str(python), "-m", "ruff", "check", "."],
        [str(python), "-m", "ruff", "format", "--check", "."],
        [str(python), "-m", "mypy"],
    ]


def lint(python: Path) -> int:
    """Run every check, even when an earlier one fails."""
    return max(_run(command) for command in lint_commands(python))


def format_tree(python: Path) -> int:
    """Rewrite the tree as ruff would have it."""
    fixed = _run([str(python), "-m", "ruff", "check", "--fix", "--quiet", "."])
    return max(fixed, _run([str(python), "-m", "ruff", "format", "."]))


def _run(command: list[str]) -> int:
    print("+ " + " ".join(["python", *command[1:]]), flush=True)
    return shown(command, LIMIT_S, ROOT)
