"""Start to ready and idle memory of ``headgate standalone``, beside Python and the imports alone.

The claim is about a quiet machine. So the time for which the process stood in line for a CPU that
others used, as the kernel counts it, is taken off where the target is checked.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.report import Table, median, number
from bench.servers import ROOT, headgate, scratch

READY_S_MAX = 0.8
READY_S_AIM = 0.6
MEMORY_MIB_MAX = 80.0
SETTLE_S = 1.0
"""After being ready, before the memory is read: the first sweeps have run by then."""

_REPORT = """
import time
text = open("/proc/self/status").read()
print(int(text.split("VmRSS:")[1].split()[0]) / 1024, time.process_time())
"""


@dataclass
class Runs:
    """Seconds by the wall clock, seconds of CPU, and MiB, of each run."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    memory_mib: list[float] = field(default_factory=list)
    quiet_s: list[float] = field(default_factory=list)
    """``wall_s`` without the time in line for a CPU."""

    def text(self) -> str:
        """The medians."""
        return (
            f"{number(median(self.wall_s))} s  {number(median(self.cpu_s))} s CPU  "
            f"{number(median(self.memory_mib))} MiB"
        )


def run_code(code: str) -> Callable[[Runs], None]:
    """A measurement of a Python that runs ``code`` and ends."""

    def run(runs: Runs) -> None:
        began_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code + _REPORT], cwd=ROOT, capture_output=True, check=True
        )
        runs.wall_s.append(time.perf_counter() - began_s)
        memory_mib, cpu_s = map(float, done.stdout.split())
        runs.memory_mib.append(memory_mib)
        runs.cpu_s.append(cpu_s)

    return run


def run_broker(runs: Runs, folder: Path, *, name: str) -> None:
    """Start a broker, wait until it says that it is ready, let it settle, and end it."""
    server = headgate(folder, name=name)
    try:
        runs.wall_s.append(server.ready_s)
        runs.cpu_s.append(server.cpu_ns() / 1e9)
        runs.quiet_s.append(server.ready_s - server.waited_for_cpu_ns() / 1e9)
        time.sleep(SETTLE_S)
        runs.memory_mib.append(server.memory_mib())
    finally:
        server.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--runs", type=int, default=0)
    options = parser.parse_args()
    python, imports, empty, again = Runs(), Runs(), Runs(), Runs()
    run_python, run_imports = run_code("pass"), run_code("import headgate.app.run")
    with scratch() as folder:
        run_imports(Runs())  # the first writes what the others find compiled
        for number_of_run in range(options.runs or (3 if options.quick else 9)):
            run_python(python)
            run_imports(imports)
            run_broker(empty, folder, name=f"run-{number_of_run}")
            run_broker(again, folder, name=f"run-{number_of_run}")
    table = Table("Start of `headgate standalone`: medians of wall time, CPU and resident memory")
    table.add("Python alone", python.text())
    table.add("and all imports", imports.text())
    table.add("ready, on an empty folder", empty.text())
    table.add("ready, on the data of the last run", again.text())
    ready_s = median(empty.quiet_s)
    spread = f"runs {number(min(empty.quiet_s))} to {number(max(empty.quiet_s))}"
    name = "ready, less the time in line for a CPU"
    table.check(name, ready_s, "s", READY_S_MAX, note=spread)
    table.aim(name, ready_s, "s", READY_S_AIM)
    table.check("idle memory", median(empty.memory_mib), "MiB", MEMORY_MIB_MAX)
    table.print()


if __name__ == "__main__":
    main()
