"""What ``./dev test-tools`` plays: the examples for Airflow and Dagster, and Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from tests.unit.pipeline.scrapes.texts import STEP_S, text_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
LIMIT_S = 600
SHOWN_CHARACTERS = 16_000
"""Of the output of a program that failed."""
SCRAPES = 61
"""Fifteen minutes of them."""


class Receiver(BaseHTTPRequestHandler):
    """A receiver of Alertmanager's webhooks."""

    alerts: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body["version"] == "4"
        self.alerts += body["alerts"]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print no line for each request."""


@contextmanager
def receiver() -> Iterator[str]:
    """The URL of a receiver."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    finally:
        server.shutdown()
        server.server_close()


def write_scrapes(folder: Path) -> None:
    """Scrapes of one broker up to now, with backlogs that grow."""
    folder.mkdir()
    begin_ms = int(time.time() * 1_000) - SCRAPES * STEP_S * 1_000
    for step in range(SCRAPES):
        path = folder / f"{begin_ms + step * STEP_S * 1_000}.prom"
        path.write_text(text_of(step * STEP_S), encoding="utf-8")


def run(title: str, command: Sequence[str], variables: dict[str, str]) -> None:
    """Run a program; its output is printed if it fails."""
    begin_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        try:
            status = subprocess.run(
                command, env={**os.environ, **variables}, stdout=output,
                stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False,
            ).returncode  # fmt: skip
            end = f"failed with status {status}" if status else ""
        except subprocess.TimeoutExpired:
            end = f"timed out after {LIMIT_S} s"
        if end:
            output.seek(0)
            sys.stderr.write(f"{output.read()[-SHOWN_CHARACTERS:]}\n")
            raise SystemExit(f"{title} {end}")
    sys.stdout.write(f"{title}: {time.monotonic() - begin_s:.0f} s\n")


def play_airflow(python: Path, home: Path, variables: dict[str, str]) -> None:
    """Run both DAGs, each task of which must succeed."""
    airflow = str(python.parent / "airflow")
    variables = variables | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    run("Airflow's database", [airflow, "db", "migrate"], variables)
    for name in ("headgate_tables", "headgate_daily"):
        run(f"Airflow: {name}", [airflow, "dags", "test", name], variables)


def play_dagster(python: Path, home: Path, variables: dict[str, str]) -> None:
    """Run both jobs, and load the schedules."""
    home.mkdir()
    dagster, file = str(python.parent / "dagster"), str(EXAMPLES / "dagster/headgate_jobs.py")
    variables = variables | {"DAGSTER_HOME": str(home)}
    run("Dagster: definitions", [dagster, "definitions", "validate", "-f", file], variables)
    for name in ("headgate_tables", "headgate_daily"):
        run(f"Dagster: {name}", [dagster, "job", "execute", "-f", file, "-j", name], variables)


def check_schedulers(airflow: Path, dagster: Path, folder: Path) -> None:
    """Each scheduler fills a folder of tables of its own, and sends alerts about it."""
    write_scrapes(folder / "scrapes")
    play = {"airflow": (play_airflow, airflow), "dagster": (play_dagster, dagster)}
    with receiver() as url:
        for name, (play_one, python) in play.items():
            tables = folder / f"{name}-tables"
            variables = {
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "HEADGATE_TABLES": str(tables),
                "HEADGATE_SOURCE": f"--scrapes {folder / 'scrapes'}",
                "HEADGATE_ALERTS": f"--webhook {url}",
            }
            Receiver.alerts.clear()
            play_one(python, folder / f"{name}-home", variables)
            found = {alert["labels"]["alertname"] for alert in Receiver.alerts}
            assert "HeadgateBacklog" in found, f"{name} sent {found}"
            assert (tables / "report.html").is_file()
            sys.stdout.write(f"{name}: {len(Receiver.alerts)} alerts, {sorted(found)}\n")


def main(airflow: str, dagster: str, connect: str) -> int:
    """Play all; a failure ends the program."""
    with tempfile.TemporaryDirectory() as folder:
        check_schedulers(Path(airflow), Path(dagster), Path(folder))
        variables = {
            "PYTHONPATH": os.pathsep.join((connect, str(ROOT / "src"), str(ROOT))),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_TESTING": "1",  # a free port for the server, in place of 15002
        }
        command = [sys.executable, "-m", "tests.peer.spark_connect", f"{folder}/airflow-tables"]
        run("Spark Connect", command, variables)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
