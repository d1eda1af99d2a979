"""The table of commands. Help, usage and dispatch all come from it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from devkit.audit import audit
from devkit.bench import run_benches
from devkit.client_suites import SUITES_WORD, play_suites
from devkit.console import DevError, say
from devkit.environment import Lane, ensure
from devkit.lane_runs import run_lanes
from devkit.lanes import LANES, LINT, wanted_lanes
from devkit.lint import format_tree, lint
from devkit.locks import write_locks
from devkit.package import package
from devkit.peer import play_peer
from devkit.promtool import ensure_promtool
from devkit.soak import KILLS_WORD, soak
from devkit.system import ensure_packages, has_java
from devkit.tools_peer import play_tools

INTERRUPTED: Final = 130


@dataclass(frozen=True)
class Command:
    """One word after ``./dev``."""

    name: str
    usage: str
    help: str
    run: Callable[[Sequence[str]], int]


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status: 0 passed, 1 failed, 2 wrong usage."""
    if not arguments or arguments[0] in ("help", "-h", "--help"):
        print(overview())
        return 0
    name, *rest = arguments
    command = next((command for command in COMMANDS if command.name == name), None)
    if command is None:
        say(f"There is no ./dev {name}.\n\n{overview()}")
        return 2
    try:
        return command.run(rest)
    except DevError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted. Finished set-up steps are kept.")
        return INTERRUPTED


def overview() -> str:
    """What ``./dev`` alone prints."""
    width = max(len(f"{command.name} {command.usage}") for command in COMMANDS)
    lines = [
        f"  ./dev {f'{command.name} {command.usage}'.rstrip():<{width}}  {command.help}"
        for command in COMMANDS
    ]
    return "\n".join(
        [
            "Headgate. A command sets up what it needs when it first runs.",
            "",
            *lines,
            "",
            "CONTRIBUTING.md explains how to contribute, docs/ARCHITECTURE.md how it is built.",
        ]
    )


def _headgate(lane: Lane, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by ``headgate ARGUMENTS``, with its signals, output and exit status."""
    python = ensure(lane)
    program = str(python.parent / "headgate")
    sys.stdout.flush()
    os.execv(program, [program, *arguments])


def _demo(arguments: Sequence[str]) -> int:
    if not has_java():
        try:
            ensure_packages(venv=False, java=True)
        except DevError as error:
            say(f"{error}\nThe demo continues without Spark.")
    _headgate(Lane.DEV, ["demo", *arguments])


def _serve(arguments: Sequence[str]) -> int:
    _headgate(Lane.BROKER, ["standalone", *arguments])


def _run_headgate(arguments: Sequence[str]) -> int:
    _headgate(Lane.DEV if arguments[:1] in (["demo"], ["pipeline"]) else Lane.BROKER, arguments)


def _test(arguments: Sequence[str]) -> int:
    names, rest = wanted_lanes(arguments)
    spark = any(lane.needs_spark for lane in LANES if lane.name in names)
    if any(lane.needs_promtool for lane in LANES if lane.name in names):
        ensure_promtool()
    if any(lane.needs_browser for lane in LANES if lane.name in names):
        ensure_packages(browser=True)
    lane = Lane.LINT if names == [LINT] else Lane.DEV
    return run_lanes(ensure(lane, java=spark), names, rest)


def _test_peer(arguments: Sequence[str]) -> int:
    if arguments[:1] == [SUITES_WORD]:
        return play_suites(ensure(Lane.DEV), arguments[1:])
    ensure_packages(venv=False, java=False, maven=True)
    python = ensure(Lane.DEV, java=True)
    return play_peer(python, arguments)


def _test_tools(_arguments: Sequence[str]) -> int:
    return play_tools(ensure(Lane.DEV, java=True))


def _lint(_arguments: Sequence[str]) -> int:
    return lint(ensure(Lane.LINT))


def _format(_arguments: Sequence[str]) -> int:
    return format_tree(ensure(Lane.LINT))


def _bench(arguments: Sequence[str]) -> int:
    return run_benches(ensure(Lane.DEV), arguments)


def _soak(arguments: Sequence[str]) -> int:
    return soak(ensure(Lane.DEV, java=arguments[:1] == [KILLS_WORD]), arguments)


def _lock(arguments: Sequence[str]) -> int:
    return write_locks(ensure(Lane.DEV), arguments)


def _audit(_arguments: Sequence[str]) -> int:
    return audit(ensure(Lane.BROKER))


def _package(_arguments: Sequence[str]) -> int:
    return package(ensure(Lane.DEV))


COMMANDS: Final = (
    Command("demo", "", "builds ten kinds of backlog and explains each one", _demo),
    Command("test", "[LANE...] [-- PYTEST ARGS]", "runs lint and all tests, or some lanes", _test),
    Command(
        "test-peer",
        "[PART...|suites ...]",
        "official clients, their suites, Pulsar, S3",
        _test_peer,
    ),
    Command(
        "test-tools", "", "runs examples under Airflow and Dagster; Spark Connect", _test_tools
    ),
    Command("serve", "[ARGS]", "starts a broker: headgate standalone ARGS", _serve),
    Command("headgate", "ARGS", "runs any other headgate command", _run_headgate),
    Command("lint", "", "checks style and types (ruff, mypy)", _lint),
    Command("format", "", "rewrites the code in the house style (ruff)", _format),
    Command("bench", "[NAME [ARGS] | all]", "measures speed, each figure beside a peer", _bench),
    Command(
        "soak", "[WORD [N]]", "plays a test that takes long; CONTRIBUTING.md names them", _soak
    ),
    Command("lock", "[--upgrade]", "resolves locks/ from pyproject.toml", _lock),
    Command("audit", "", "checks locked packages for known vulnerabilities", _audit),
    Command("package", "", "builds both distributions and the Spark archive into dist/", _package),
)
