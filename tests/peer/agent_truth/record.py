"""Plays the situations on an Apache Pulsar, and keeps every answer of its admin API.

    python -m tests.peer.agent_truth.record JARS FOLDER [--seconds 310] [--factor 1.0 ...]

A record is a gzipped file with a JSON object in each line: ``at_ns`` (monotonic, in the middle of
the request), ``kind``, ``path``, ``status`` and ``body``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from tests.peer.agent_truth.situations import ROUNDS, of_round
from tests.peer.apache_pulsar import ApachePulsar
from tests.spark.labelled import MAIN, WIDE, Situation, clients_of, rate_body

STATS = "stats?getPreciseBacklog=false&subscriptionBacklogSize=false"
LOOK_S = 1.0
PROOF_S = 15.0
SURVEY_S = 60.0
SETTLE_S = 3.0
"""Clients fill their queues, and limits that were just set are in force."""
BROKER_LIMIT = 120
AT_ONCE = 4
TOPICS_AT_ONCE = 4
"""Of one process of clients: all of it share one thread for the network, which needs Python's lock
for each receipt."""
REQUEST_S = 10
RECORD_S = 310.0
"""Five minutes, as the slowest judgement needs, and a little."""


class Recorder:
    """Asks the admin API, and writes what it answers."""

    def __init__(self, admin_url: str, out: TextIO) -> None:
        self._url = admin_url
        self._out = out
        self._lock = threading.Lock()

    def ask(self, kind: str, path: str) -> None:
        """Ask once, and keep the answer."""
        began_ns = time.monotonic_ns()
        status, body = request(f"{self._url}{path}")
        at_ns = (began_ns + time.monotonic_ns()) // 2
        line = {"at_ns": at_ns, "kind": kind, "path": path, "status": status, "body": body}
        text = json.dumps(line) + "\n"
        with self._lock:
            self._out.write(text)


def request(url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, Any]:
    """Status and answer of one request."""
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=REQUEST_S) as reply:
            status, data = reply.status, reply.read()
    except urllib.error.HTTPError as error:
        status, data = error.code, error.read()
    try:
        return status, json.loads(data)
    except ValueError:
        return status, data.decode(errors="replace")


def must(url: str, method: str, body: bytes | None = None) -> None:
    """Raises :class:`RuntimeError` if the request is refused."""
    status, answer = request(url, method, body)
    if status >= 300:
        raise RuntimeError(f"{method} {url}: {status} {answer}")


def prepare(admin_url: str, situations: Sequence[Situation]) -> None:
    """Create topics and subscriptions, and set limits."""
    for situation in situations:
        topic = f"{admin_url}/admin/v2/{situation.topic.replace('://', '/')}"
        must(topic, "PUT")
        for name in situation.consumers:
            must(f"{topic}/subscription/{name}", "PUT")
        for _, kind, messages, size in situation.limits:
            must(f"{topic}/{kind}", "POST", rate_body(messages, size))


def record(admin_url: str, situations: Sequence[Situation], seconds: float, out: TextIO) -> None:
    """Look at all topics for so long."""
    recorder = Recorder(admin_url, out)
    paths = [f"/admin/v2/{each.topic.replace('://', '/')}" for each in situations]
    recorder.ask("configuration", "/admin/v2/brokers/configuration/runtime")
    recorder.ask("namespace", "/admin/v2/namespaces/public/default")
    for path in paths:
        for kind in ("dispatchRate", "subscriptionDispatchRate", "publishRate"):
            recorder.ask(kind, f"{path}/{kind}")
    begun_s = time.monotonic()
    due_s = {"stats": begun_s, "internalStats": begun_s, "survey": begun_s}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while (now_s := time.monotonic()) < begun_s + seconds:
            if now_s >= due_s["survey"]:
                due_s["survey"] += SURVEY_S
                recorder.ask("survey", "/admin/v2/broker-stats/topics")
            if now_s >= due_s["internalStats"]:
                due_s["internalStats"] += PROOF_S
                list(pool.map(lambda path: recorder.ask("proof", f"{path}/internalStats"), paths))
            due_s["stats"] += LOOK_S
            list(pool.map(lambda path: recorder.ask("stats", f"{path}/{STATS}"), paths))
            time.sleep(max(due_s["stats"] - time.monotonic(), 0))


@contextmanager
def played(
    java: str, jars: Path, cluster: str, factors: Sequence[float], seconds: float
) -> Iterator[tuple[ApachePulsar, Sequence[Situation]]]:
    """A cluster in which the situations are under way."""
    situations = [each for factor in factors for each in of_round(factor, cluster)]
    with tempfile.TemporaryDirectory() as name, ApachePulsar(java, jars, Path(name)) as peer:
        prepare(peer.admin_url, situations)
        if cluster == WIDE:
            limit = BROKER_LIMIT * sum(factors)
            key = f"/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg/{round(limit)}"
            must(peer.admin_url + key, "POST")
        with ExitStack() as stack:
            processes = []
            for at in range(0, len(situations), TOPICS_AT_ONCE):
                log = Path(name) / f"clients-{at}.log"
                some = situations[at : at + TOPICS_AT_ONCE]
                urls = {cluster: peer.service_url}
                clients = stack.enter_context(clients_of(some, urls, seconds + 60, log))
                processes.append((clients, log))
            time.sleep(SETTLE_S)
            yield peer, situations
            for clients, log in processes:
                if clients.poll() is not None:
                    raise RuntimeError(f"clients ended:\n{log.read_text()[-2_000:]}")


def record_round(
    java: str, jars: Path, folder: Path, cluster: str, factors: Sequence[float], seconds: float
) -> None:
    """Play the situations of a round or several at once, and keep what the cluster answered."""
    name = "-".join((cluster, *(f"{factor:g}" for factor in factors)))
    with (
        played(java, jars, cluster, factors, seconds) as (peer, situations),
        gzip.open(folder / f"{name}.jsonl.gz", "wt") as out,
    ):
        record(peer.admin_url, situations, seconds, out)


def main() -> None:
    """Play and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=RECORD_S)
    parser.add_argument("--factor", type=float, action="append")
    parser.add_argument("--cluster", choices=(MAIN, WIDE), action="append")
    options = parser.parse_args()
    java = shutil.which("java")
    if java is None:
        raise SystemExit("no java on the path")
    options.folder.mkdir(parents=True, exist_ok=True)
    rounds = [tuple(options.factor)] if options.factor else ROUNDS
    for factors in rounds:
        for cluster in options.cluster or (MAIN, WIDE):
            jars = options.jars.resolve()
            record_round(java, jars, options.folder, cluster, factors, options.seconds)


if __name__ == "__main__":
    main()
