"""What a survey costs: less than 2 s of a core and 200 MiB for 10,000 topics."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headgate.base.units import KIB, MIB

CPU_S_MAX = 2.0
MEMORY_BYTES_MAX = 200 * MIB

PROGRAM = """
import json, sys, time
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.reading import survey_looks
from headgate.explain.delivery import Instant

def peak():
    # Of this program alone: what getrusage tells includes the one that started it.
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

history = ClusterHistory("x")
raw = open(sys.argv[1], "rb").read()
begin_s = time.process_time()
for minute in range(2):
    for look in survey_looks(raw, (1 + 60 * minute) * 10**9, "broker-0:8080"):
        history.note_look(look)
    if not minute:
        first_s = time.process_time() - begin_s
history.suspects(200, 61 * 10**9)
top = history.top(10, Instant(61 * 10**9, 0))
print(json.dumps([first_s, time.process_time() - begin_s, peak(), top["subscriptionsTotal"]]))
"""


def measured(count: int, path: str) -> tuple[float, int, int]:
    """CPU seconds of a survey, peak of the process in bytes, and the subscriptions it found."""
    import json

    from headgate.testing.fake_cluster.cluster import FakeCluster, many_topics
    from headgate.testing.fake_cluster.pulsar_json import survey

    cluster = FakeCluster()
    cluster.add(many_topics(count))
    with open(path, "w") as file:
        json.dump(survey(cluster, cluster.brokers[0], 600_000_000_000), file)
    done = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, check=True)
    first_s, all_s, peak_kib, found = json.loads(done.stdout)
    return max(first_s, all_s - first_s), peak_kib * KIB, found


@pytest.mark.slow
def test_ten_thousand_topics(tmp_path: object) -> None:
    cpu_s, peak_bytes, found = measured(10_000, f"{tmp_path}/survey.json")
    assert found == 10_000
    assert cpu_s < CPU_S_MAX
    assert peak_bytes < MEMORY_BYTES_MAX
