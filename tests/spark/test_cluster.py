"""The pipeline by ``spark-submit`` on a standalone cluster, with the environment archive.

``local-cluster`` starts the executor as a separate process: whatever cannot be pickled or is
missing from the archive fails here. A second executor would unpack it and start once more.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from devkit.archive import SCRIPT, build_archive
from devkit.package import DISTRIBUTIONS, build

from tests.spark.java import submit_options
from tests.spark.telemetry_topic import rows_of
from tests.unit.pipeline.play import SITUATIONS, play

if TYPE_CHECKING:
    from tests.spark.conftest import Cluster

LIMIT_S = 480.0
UNUSED = ("llvmlite", "numba", "plotly")
"""Packages that the job does not import, 230 MB of 740: those of back-tests and of the report. To
pack them once and to unpack them three times would take a tenth of the test's time."""
SPARK_HOME = Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive that ``./dev package`` builds, not compressed and without what the job does not
    use: the test, the driver and each executor unpack it."""
    folder = tmp_path_factory.mktemp("dist")
    python = Path(sys.executable)
    wheels = [
        path
        for _, source in DISTRIBUTIONS
        for path in build(python, source, folder)
        if path.suffix == ".whl"
    ]
    return build_archive(python, wheels, folder, level=0, without=UNUSED)


@pytest.fixture
def unpacked(archive: Path) -> Iterator[Path]:
    """A folder with the environment, as on the machine that submits: 500 MB, removed after."""
    with tempfile.TemporaryDirectory(prefix="headgate-cluster-") as name:
        with tarfile.open(archive) as tar:
            tar.extractall(Path(name, "environment"), filter="fully_trusted")
        yield Path(name)


def submit(folder: Path, archive: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``spark-submit`` of ``headgate pipeline WORDS``, with nothing of this checkout in reach."""
    hidden = ("PYTHONPATH", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [
            str(SPARK_HOME / "bin" / "spark-submit"),
            "--master", "local-cluster[1,2,1024]",
            "--archives", f"{archive}#environment",
            "--conf", "spark.sql.shuffle.partitions=2",
            "--conf", "spark.sql.codegen.wholeStage=false",
            "--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN",
            "--conf", "spark.ui.enabled=false",
            "--conf", f"spark.executor.extraJavaOptions={submit_options()}",
            f"environment/{SCRIPT}", *words,
        ],
        cwd=folder,
        env=environment | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": "./environment/bin/python",
        },
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip


def remove_work(text: str) -> None:
    """Remove what executors unpacked into Spark's own folder, 500 MB each, by the log's text."""
    for name in set(re.findall(r"\bapp-\d+-\d+\b", text)):
        shutil.rmtree(SPARK_HOME / "work" / name, ignore_errors=True)


def test_a_cluster_judges_as_one_machine_does(
    unpacked: Path, archive: Path, cluster: Cluster
) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, play(50))
    source = [
        "--topic", topic, "--out", str(unpacked / "tables"),
        "--broker-url", cluster.broker.service_url, "--admin-url", cluster.broker.admin_url,
    ]  # fmt: skip
    done = submit(unpacked, archive, "attribute", *source, "--format", "json")
    remove_work(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr
    # Spark's launcher puts both of the job's outputs into one.
    rows = json.loads(done.stdout[done.stdout.index("[{") :])
    wanted = {(s.topic, s.subscription): s.verdict for s in SITUATIONS}
    assert {(row["topic"], row["subscription"]): row["verdict"] for row in rows} == wanted
    assert rows_of(unpacked / "tables", "attribution").num_rows > 0
