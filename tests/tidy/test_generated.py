"""What tools write from the code is as the code is now."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tidy.tree import ROOT

GENERATORS = (
    "generate_boards.py",
    "generate_config.py",
    "generate_proto.py",
    "generate_record_proto.py",
    "generate_reference.py",
)


@pytest.mark.parametrize("name", GENERATORS)
def test_generated_files_are_current(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / name), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"run tools/{name}"


def test_all_generators_are_checked() -> None:
    assert {path.name for path in (ROOT / "tools").glob("generate_*.py")} == set(GENERATORS)
