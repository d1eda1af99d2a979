"""Imports point down: the table of docs/ARCHITECTURE.md, enforced.

To let a package import another one, change the table here and the drawing there in one commit,
with the reason. Standard library modules are free unless a row bans them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator

from tests.tidy.tree import Module, modules, report

# What a package may import of headgate. A package may always import itself.
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "flow": {"base"},
    "wire": {"base"},
    "fs": {"base"},
    "ledger": {"fs", "base"},
    "metadata": {"base"},
    "explain": {"flow", "base"},
    "record": {"base"},
    "security": {"base"},
    "access": {"security", "base"},
    "schema": {"base"},
    "engine": {"flow", "base"},
    "policy": {"engine", "metadata", "security", "flow", "base"},
    "control": {"policy", "engine", "flow", "base"},
    "storage": {"engine", "ledger", "metadata", "flow", "base"},
    "broker": {
        "control", "storage", "policy", "engine", "wire", "ledger", "metadata", "schema",
        "security", "flow", "base",
    },
    "observe": {
        "explain", "broker", "control", "storage", "policy", "engine", "ledger", "metadata", "flow",
        "base",
    },
    "facade": {
        "observe", "broker", "storage", "policy", "engine", "wire", "ledger", "metadata", "schema",
        "flow", "base",
    },
    "admin": {"facade", "observe", "explain", "metadata", "schema", "base"},
    "telemetry": {
        "access", "observe", "broker", "control", "storage", "policy", "engine", "wire", "ledger",
        "metadata", "flow", "record", "base",
    },
    "page": {"base"},
    # It serves the page's files over the tables.
    "pipeline": {"page", "flow", "record", "base"},
    "app": {
        "agent", "access", "page", "telemetry", "admin", "facade", "observe", "broker", "control",
        "storage", "policy", "engine", "wire", "ledger", "metadata", "record", "security", "flow",
        "fs", "base",
    },
    "demo": {"app", "pipeline", "broker", "security", "flow", "base"},
    "agent": {"access", "explain", "page", "flow", "record", "fs", "base"},
    "cli": {"agent", "explain", "access", "app", "demo", "pipeline", "admin", "security", "base"},
    "testing": {
        "agent", "access", "explain", "pipeline", "telemetry", "admin", "facade", "observe",
        "broker", "control", "storage",
        "policy", "engine", "wire", "ledger", "metadata", "record", "security", "flow", "fs",
        "base",
    },
    "pyspark_pulsar": set(),
}  # fmt: skip

# What a package may import from outside, besides the standard library.
EXTERNAL: dict[str, set[str]] = {
    "wire": {"google", "google_crc32c"},
    "ledger": {"google_crc32c"},
    "metadata": {"msgspec"},
    "record": {"google"},
    "security": {"jwt", "cryptography", "bcrypt"},
    "schema": {"google", "msgspec"},
    "policy": {"msgspec"},
    "storage": {"msgspec"},
    "broker": {"google_crc32c", "msgspec", "re2"},
    "explain": {"msgspec"},
    "page": {"starlette"},
    "agent": {"click", "msgspec", "pulsar", "rich", "starlette", "urllib3", "uvicorn", "uvloop"},
    "observe": {"msgspec"},
    "facade": {"msgspec"},
    "admin": {"starlette", "msgspec", "urllib3"},
    "telemetry": {"msgspec", "opentelemetry", "requests", "starlette", "urllib3"},
    "pipeline": {
        "pyspark", "pyarrow", "pandas", "numpy", "deltalake", "pulsar", "rich", "urllib3",
        "pyspark_pulsar", "plotly", "jinja2", "prometheus_client", "numba", "obstore",
        "prompt_toolkit", "openlineage", "starlette", "uvicorn",
    },
    "app": {"uvloop", "uvicorn", "starlette", "msgspec", "pulsar", "rich", "urllib3"},
    "demo": {"pulsar", "rich", "urllib3", "msgspec"},
    "cli": {"click", "rich", "urllib3", "msgspec", "pulsar"},
    "testing": {"starlette", "msgspec"},
    "pyspark_pulsar": {"google", "google_crc32c", "pyarrow", "pyspark", "urllib3"},
}  # fmt: skip

# A law gets its time, its chance and its bytes as arguments.
IMPURE = {
    "asyncio", "concurrent", "datetime", "http", "io", "logging", "mmap", "multiprocessing", "os",
    "pathlib", "queue", "random", "secrets", "select", "selectors", "shutil", "signal", "socket",
    "sqlite3", "ssl", "subprocess", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
BLOCKING_BY_DESIGN = {"asyncio", "http", "socket", "ssl"}
BANNED_STANDARD: dict[str, set[str]] = {
    "flow": IMPURE,
    "wire": IMPURE,
    "engine": IMPURE,
    "record": IMPURE,
    "explain": IMPURE,
    "schema": IMPURE,
    "fs": BLOCKING_BY_DESIGN,
    "ledger": BLOCKING_BY_DESIGN | {"time", "random", "os", "pathlib"},
    "metadata": BLOCKING_BY_DESIGN | {"time", "random"},
    "base": IMPURE,
    "pipeline": {"asyncio"},
}
BANNED_EXCEPTIONS = {("headgate.base.clock", "time"), ("headgate.base.instants", "datetime")}
"""The clock protocol's one real implementation lives beside it; a calendar is no clock."""

LAZY_IMPORTS_ALLOWED = {"access", "agent", "cli", "pipeline", "pyspark_pulsar"}
"""A command loads what it needs when it runs; Spark is an extra."""
LAZY_MODULES_ALLOWED = {"headgate.app.open_telemetry"}
"""What few brokers need must cost the others neither time nor memory."""

KERNELS = "headgate.pipeline.kernels"
BANNED_OF_KERNELS = ("pyspark", "pandas", "deltalake", "headgate.pipeline.store")
"""A kernel gets Arrow tables and gives them: neither it nor what it imports may know of these."""

STEPS = "headgate.pipeline.steps"
"""The modules here are ``DataFrame -> DataFrame`` and nothing else."""
BANNED_OF_STEPS = {
    "SparkSession", "SparkContext", "deltalake", "io", "os", "pathlib",
}  # fmt: skip
"""Parts of names that a step may not import: what makes a session, and what knows of files."""
NEVER_IN_STEPS = {
    "cache", "checkpoint", "collect", "first", "foreach", "foreachPartition", "getActiveSession",
    "head", "isEmpty", "localCheckpoint", "persist", "rdd", "sparkSession", "toArrow",
    "toLocalIterator", "toPandas", "write", "writeStream", "writeTo",
}  # fmt: skip
"""What of a DataFrame runs it, keeps it or leads to its session."""

OUTPUT = "headgate.pipeline.output"
BANNED_OF_OUTPUT = ("pyspark", "pandas", "pyspark_pulsar")
"""``headgate pipeline show`` and the report print rows on a machine that has no Spark."""

# What a folder or module of the pipeline may import of it, from the bottom up.
PIPELINE: dict[str, set[str]] = {
    "time_span": set(),
    "failures": set(),
    "progress": set(),
    "location": set(),
    "spark_options": set(),
    "spark_sources": set(),
    "lineage_options": set(),
    "access_options": set(),
    "one_task": set(),
    "timed_folders": set(),
    "options": {"location", "spark_options", "lineage_options", "access_options"},
    "spark_failures": {"failures"},
    "tables": set(),
    "kernels": {"tables", "time_span"},
    "scrapes": {"tables", "timed_folders"},
    "record_files": {"kernels", "tables", "timed_folders"},
    "store": {
        "record_files", "scrapes", "kernels", "tables", "options", "location", "progress",
        "failures", "time_span", "one_task",
    },
    "source": {"store", "tables", "location", "failures", "time_span", "spark_sources"},
    "sql": {"store", "kernels", "tables", "options"},
    "steps": {"kernels", "tables", "one_task"},
    "derived": {"steps", "store", "kernels", "tables", "time_span"},
    "output": {"store", "kernels", "tables", "options", "time_span"},
    "backtest": {"output", "store", "kernels", "tables", "progress"},
    "report": {
        "backtest", "output", "store", "kernels", "tables", "options", "progress", "time_span",
    },
    "serve": {"report", "output", "store", "kernels", "tables", "options", "time_span"},
    "alerts": {
        "output", "store", "kernels", "tables", "location", "failures", "time_span",
    },
    "session": {
        "source", "store", "spark_failures", "spark_options", "spark_sources", "failures",
        "one_task",
    },
    "worker_daemon": {"store"},
    "scrape_ingest": {"session", "scrapes", "store", "tables", "timed_folders"},
    "record_file_ingest": {"session", "record_files", "store", "tables", "timed_folders"},
    "single_source": {"scrapes", "store", "tables"},
    "refresh": {"session", "derived", "store", "tables", "progress", "time_span"},
    "quality": {"derived", "store", "kernels", "tables"},
    "lineage": {"kernels", "tables", "options", "lineage_options", "location", "time_span"},
    "cluster_identity": {"options"},
    "streaming": {
        "lineage", "quality", "refresh", "session", "cluster_identity", "derived", "output",
        "store", "kernels", "tables", "options", "location", "progress", "spark_sources",
    },
    "preflight": {"cluster_identity", "options"},
    "job_session": {
        "single_source", "preflight", "session", "store", "spark_failures", "spark_options",
        "failures", "options", "location", "progress",
    },
    "queries": {
        "lineage", "job_session", "session", "backtest", "output", "steps", "sql", "source",
        "store", "kernels", "tables", "spark_failures", "failures", "options", "location",
        "progress", "time_span",
    },
    "jobs": {
        "queries", "job_session", "lineage", "streaming", "quality", "refresh", "scrape_ingest",
        "record_file_ingest", "record_files", "derived", "output", "store", "scrapes", "tables",
        "options", "location", "progress", "time_span",
    },
    "upgrade": {
        "jobs", "refresh", "job_session", "derived", "store", "tables", "failures", "options",
        "location", "progress",
    },
}  # fmt: skip

BANNED_INSIDE_BROKER = {
    "headgate.broker.commands": (
        "headgate.broker.server", "headgate.broker.service",
        "headgate.broker.connection.connection",
    ),
    "headgate.broker.connection": (
        "headgate.broker.server", "headgate.broker.service", "headgate.broker.commands",
    ),
    "headgate.broker.sweeps": (
        "headgate.broker.server", "headgate.broker.service", "headgate.broker.commands",
        "headgate.broker.connection",
    ),
}  # fmt: skip
"""``server`` gives the handlers of commands to each connection; ``service`` composes the rest."""

ADMIN_SEES = (
    "headgate.facade.protocol",
    "headgate.facade.message_protocol",
    "headgate.observe.stats.fields",
    "headgate.explain.reports",
)
"""What it asks, and the plain types of the answers, which its description shows."""


def test_every_package_stands_in_the_table() -> None:
    found = {module.layer for module in modules()} - {"headgate"}
    assert found <= set(ALLOWED), f"not in the table: {sorted(found - set(ALLOWED))}"


def test_imports_point_down() -> None:
    problems = []
    for module in modules():
        for line, target in _targets(module):
            parts = target.split(".")
            if parts[0] != "headgate" or len(parts) < 2 or parts[1] not in ALLOWED:
                continue
            if parts[1] not in ALLOWED.get(module.layer, set()) | {module.layer}:
                problems.append(f"{module.where}:{line}: {module.layer} may not import {target}")
    assert not problems, report(problems)


def test_admin_sees_only_the_facade_of_the_broker() -> None:
    problems = [
        f"{module.where}:{line}: admin may import {' and '.join(ADMIN_SEES)} only"
        for module in modules()
        if module.layer == "admin"
        for line, target in _targets(module)
        if target.startswith(("headgate.facade", "headgate.observe"))
        and not target.startswith(ADMIN_SEES)
    ]
    assert not problems, report(problems)


def test_kernels_know_neither_spark_nor_where_tables_are() -> None:
    _check_reached(KERNELS, BANNED_OF_KERNELS, modules_min=20)


def test_output_reaches_no_spark() -> None:
    _check_reached(OUTPUT, BANNED_OF_OUTPUT, modules_min=5)


def test_imports_within_the_pipeline_point_down() -> None:
    rooms = list(PIPELINE)
    for room, allowed in PIPELINE.items():
        assert allowed <= set(rooms[: rooms.index(room)]), f"{room} may not import what follows it"
    problems = []
    for module in modules():
        room = _pipeline_room(module.name)
        for line, target in _targets(module):
            to = _pipeline_room(target)
            if room and to and to not in PIPELINE.get(room, set()) | {room}:
                problems.append(f"{module.where}:{line}: pipeline.{room} may not import {target}")
    assert not problems, report(problems)


def _pipeline_room(name: str) -> str:
    """The folder or module directly under the pipeline, or nothing."""
    parts = name.split(".")
    return parts[2] if parts[:2] == ["headgate", "pipeline"] and len(parts) > 2 else ""


def test_parts_of_the_broker_point_one_way() -> None:
    for package, banned in BANNED_INSIDE_BROKER.items():
        _check_reached(package, banned, modules_min=5)


def _check_reached(package: str, banned: tuple[str, ...], *, modules_min: int) -> None:
    """Check that no module of a package imports what is banned, by way of others either."""
    by_name = {module.name: module for module in modules()}
    inside = [name for name in by_name if name.startswith(f"{package}.")]
    problems = []
    for start in inside:
        reached, waiting = {start}, [start]
        while waiting:
            module = by_name[waiting.pop()]
            for line, target in _targets(module):
                if _is_in(target, banned):
                    problems.append(f"{module.where}:{line}: {start} gets to know {target}")
                following = _module_of(target, by_name.keys())
                if following and following not in reached:
                    reached.add(following)
                    waiting.append(following)
    assert len(inside) >= modules_min
    assert not problems, report(problems)


def test_steps_take_no_session_collect_nothing_and_touch_no_store() -> None:
    steps = [module for module in modules() if module.name.startswith(f"{STEPS}.")]
    assert len(steps) >= 5
    problems = [
        f"{module.where}:{line}: a step may not import {target}"
        for module in steps
        for line, target in _targets(module)
        if not BANNED_OF_STEPS.isdisjoint(target.split("."))
    ]
    problems += [
        f"{module.where}:{node.lineno}: a step may not call {ast.unparse(node)}"
        for module in steps
        for node in module.nodes
        if (isinstance(node, ast.Attribute) and node.attr in NEVER_IN_STEPS)
        or (isinstance(node, ast.Name) and node.id == "open")
    ]
    assert not problems, report(problems)


def test_nothing_imports_the_root_but_for_its_version() -> None:
    problems = [
        f"{module.where}:{line}: imports the package root: {target}"
        for module in modules()
        for line, target in _targets(module)
        if target.split(".")[0] == "headgate"
        and (target == "headgate" or target.split(".")[1] not in ALLOWED)
        and target != "headgate.__version__"
    ]
    assert not problems, report(problems)


def test_each_package_uses_its_own_libraries_only() -> None:
    problems = []
    for module in modules():
        allowed = EXTERNAL.get(module.layer, set()) | {"headgate", module.layer}
        for line, target in _targets(module):
            top = target.split(".")[0]
            if top not in sys.stdlib_module_names and top not in allowed:
                problems.append(f"{module.where}:{line}: {module.layer} may not use {top}")
    assert not problems, report(problems)


def test_pure_packages_are_pure() -> None:
    problems = []
    for module in modules():
        banned = BANNED_STANDARD.get(module.layer, set())
        for line, target in _targets(module):
            top = target.split(".")[0]
            if top in banned and (module.name, top) not in BANNED_EXCEPTIONS:
                problems.append(f"{module.where}:{line}: {module.layer} may not import {top}")
    assert not problems, report(problems)


def test_imports_stand_at_the_top() -> None:
    problems = [
        f"{module.where}:{found.line}: {found.target} is imported inside a function"
        for module in modules()
        if module.layer not in LAZY_IMPORTS_ALLOWED and not module.is_generated
        if module.name not in LAZY_MODULES_ALLOWED
        for found in module.imports()
        if found.in_function
    ]
    assert not problems, report(problems)


def _targets(module: Module) -> Iterator[tuple[int, str]]:
    for found in module.imports():
        if not found.target.startswith("__future__"):
            yield found.line, found.target


def _is_in(target: str, packages: tuple[str, ...]) -> bool:
    return any(target == package or target.startswith(f"{package}.") for package in packages)


def _module_of(target: str, names: Collection[str]) -> str:
    """The module of ours that an import executes, or nothing."""
    while target and target not in names:
        target = target.rpartition(".")[0]
    return target
