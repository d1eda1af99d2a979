"""``./dev lint`` and ``./dev format``: ruff over the tree, mypy over what is shipped."""

from __future__ import annotations

import subprocess
from pathlib import Path

from devkit.paths import ROOT, environment_variables


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
    return subprocess.run(command, cwd=ROOT, env=environment_variables(), check=False).returncode
