"""The path on which Spark's Python processes find PySpark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from headgate.pipeline.worker_path import sitecustomize
from headgate.pipeline.worker_path.sitecustomize import packages_first

LIMIT_S = 60.0
PACKAGE = Path(pyspark.__file__).parent
ZIPS = [str(path) for path in sorted((PACKAGE / "python" / "lib").glob("*.zip"))]
OWN = str(Path(sitecustomize.__file__).parent)


def run(script: str, *folders: str) -> str:
    """The output of a process with these folders first on its path."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return done.stdout.strip()


def test_a_process_with_spark_s_path_takes_the_compiled_package() -> None:
    script = "import importlib.util as u; print(u.find_spec('pyspark').origin)"
    assert len(ZIPS) == 2
    assert ".zip" in run(script, *ZIPS)
    assert run(script, *ZIPS, OWN) == pyspark.__file__


def test_only_zip_files_of_the_same_package_move() -> None:
    other = "/opt/spark/python/lib/pyspark.zip"
    first, second = ZIPS
    packages = str(PACKAGE.parent)
    assert packages_first([first, second, "/mine.zip", packages, "/x"]) == [
        "/mine.zip", packages, "/x", first, second
    ]  # fmt: skip
    # Without its package, or of another installation, a zip file is all that there is.
    assert packages_first([first, "/x"]) == [first, "/x"]
    assert packages_first([other, packages]) == [other, packages]


def test_the_user_s_own_module_of_that_name_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.own = 'runs'\n")
    script = "import sys; print(getattr(sys, 'own', 'hidden'))"
    assert run(script, *ZIPS, OWN, str(tmp_path)) == "runs"
    assert run(script, *ZIPS, OWN) == "hidden"
