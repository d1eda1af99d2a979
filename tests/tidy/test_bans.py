"""Calls and words that have no place here, each with what to use instead.

A ban is about a layer: the real clock, entropy and disk belong to ``app`` and to the few modules
made for them; everything else is handed what it needs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.tidy.tree import ROOT, Module, project_files, report, written_modules

EDGES = frozenset({"access", "app", "cli", "demo", "pipeline", "pyspark_pulsar"})
"""Where the program meets the machine, and Spark's side, whose time is Spark's."""

DEMO_PROCESSES = frozenset({"headgate.demo.spark_job", "headgate.demo.workers"})
"""They end at once when the demo is gone, whatever their clients and Spark still wait for."""


@dataclass(frozen=True)
class Ban:
    """Names that only some packages or modules may use."""

    pattern: re.Pattern[str]
    allowed: frozenset[str]
    """Layers or full module names."""
    instead: str


def _ban(pattern: str, allowed: frozenset[str], instead: str) -> Ban:
    return Ban(re.compile(rf"(?:{pattern})\Z"), allowed, instead)


BANS = (
    _ban(
        r"time\.\w+|datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today",
        EDGES | {"headgate.base.clock"},
        "take now_ns, or a headgate.base.clock.Clock",
    ),
    _ban(
        r"random\.(?!Random\b)\w+|secrets\.\w+|uuid\.uuid[14]|os\.urandom",
        EDGES,
        "take a seed, a random.Random or an id from headgate.app",
    ),
    _ban(
        r"open|io\.open|os\.(open|fdopen|remove|unlink|rename|replace|makedirs|mkdir)",
        EDGES | {"fs"},
        "go through headgate.fs.Fs",
    ),
    _ban(r"print", frozenset({"cli"}), "log it, or return it to the command that prints"),
    _ban(
        r"asyncio\.(get_event_loop|ensure_future)",
        frozenset(),
        "asyncio.get_running_loop, or a task whose reference is kept",
    ),
    _ban(r"os\.(environ|getenv)\b.*", EDGES, "settings are read once, in headgate.app"),
    _ban(
        r"sys\.exit|os\._exit|exit|quit",
        frozenset({"cli", "app"}) | DEMO_PROCESSES,
        "raise a typed error",
    ),
)

# Put together at run time, so that this file does not hold them.
UNFINISHED = tuple("".join(parts) for parts in (("TO", "DO"), ("FIX", "ME"), ("XX", "X")))
SWITCHED_OFF = tuple(
    "".join(parts)
    for parts in (("NotImplemented", "Error"), ("pytest.mark.", "skip"), ("assert ", "True"))
)


def test_banned_calls() -> None:
    problems = []
    for module in written_modules():
        for line, name in _used_names(module):
            for ban in BANS:
                if ban.pattern.match(name) and not ban.allowed & {module.layer, module.name}:
                    problems.append(f"{module.where}:{line}: {name}: {ban.instead}")
    assert not problems, report(problems)


def test_tasks_are_kept() -> None:
    """The event loop holds tasks weakly: one that nobody holds may vanish while it runs."""
    problems = [
        f"{module.where}:{node.lineno}: keep the task, or use a task group"
        for module in written_modules()
        for node in module.nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr in ("create_task", "ensure_future")
        and not _is_task_group(node.value.func.value)
    ]
    assert not problems, report(problems)


def test_assertions_hold_under_optimisation() -> None:
    """``python -O`` drops a plain assert."""
    problems = [
        f"{module.where}:{node.lineno}: headgate.base.errors.invariant instead of assert"
        for module in written_modules()
        for node in module.nodes
        if isinstance(node, ast.Assert)
    ]
    assert not problems, report(problems)


def test_nothing_is_unfinished_or_switched_off() -> None:
    words = re.compile("|".join([*(rf"\b{w}\b" for w in UNFINISHED), *SWITCHED_OFF]))
    problems = []
    for path in project_files():
        where = str(path.relative_to(ROOT))
        if path.suffix in (".py", ".md", ".toml", ".proto", ".yml", ".sh", ".conf", ".js"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if words.search(line):
                    problems.append(f"{where}:{number}: {line.strip()[:80]}")
    assert not problems, report(problems)


def _used_names(module: Module) -> Iterator[tuple[int, str]]:
    """Every dotted name that is used, with what it was imported as put in full.

    ``from time import sleep as s; s()`` gives ``time.sleep``; a builtin gives its own name.
    """
    imported = _imported_names(module)
    bound = {node.arg for node in module.nodes if isinstance(node, ast.arg)}
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name not in bound:
                yield node.lineno, imported.get(name, name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            dotted = _dotted(node)
            head, _, rest = dotted.partition(".")
            if head in imported:
                yield node.lineno, f"{imported[head]}.{rest}"
        elif isinstance(node, ast.Name) and "." in imported.get(node.id, ""):
            yield node.lineno, imported[node.id]


def _imported_names(module: Module) -> dict[str, str]:
    names = {}
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def _is_task_group(node: ast.expr) -> bool:
    name = _dotted(node).rsplit(".", 1)[-1].lstrip("_")
    return name in ("group", "tasks", "task_group", "tg")
