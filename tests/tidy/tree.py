"""The source tree as the tidy tests see it: every module with its syntax tree and its imports."""

from __future__ import annotations

import ast
import gc
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Import:
    """One imported module, absolute, and how it stands in the file."""

    target: str
    """``a.b`` of ``import a.b``; ``a.b.c`` of ``from a.b import c``."""
    line: int
    in_function: bool
    executed: bool
    """Not so under ``if TYPE_CHECKING``: only type checkers follow that import."""


@dataclass(frozen=True)
class Module:
    """One file under ``src/``."""

    name: str
    path: Path
    text: str
    syntax: ast.Module

    @property
    def is_package(self) -> bool:
        """Whether it is an ``__init__``."""
        return self.path.name == "__init__.py"

    @property
    def is_generated(self) -> bool:
        """Whether a tool wrote it."""
        return "_generated" in self.path.parts

    @property
    def layer(self) -> str:
        """``flow`` of ``headgate.flow.limits.gate``; the top package itself for anything else."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "headgate" and len(parts) > 1 else parts[0]

    @property
    def where(self) -> str:
        """Its path, for messages."""
        return str(self.path.relative_to(ROOT))

    def imports(self) -> tuple[Import, ...]:
        """Every import of the file, wherever it stands."""
        return self._imports

    @cached_property
    def _imports(self) -> tuple[Import, ...]:
        return tuple(self._find_imports())

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, which many rules look at."""
        return tuple(ast.walk(self.syntax))

    def _find_imports(
        self, within: ast.AST | None = None, in_function: bool = False, for_types: bool = False
    ) -> Iterator[Import]:
        for node in ast.iter_child_nodes(within or self.syntax):
            targets: list[str] = []
            if isinstance(node, ast.expr):
                continue
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                targets = [f"{self._absolute(node)}.{alias.name}" for alias in node.names]
            for target in targets:
                yield Import(target, node.lineno, in_function, not for_types)
            yield from self._find_imports(
                node,
                in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef),
                for_types or _is_for_types(node),
            )

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        package = package[: len(package) - node.level + 1]
        return ".".join([*package, *([node.module] if node.module else [])])


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


@cache
def modules() -> tuple[Module, ...]:
    """Every module under ``src/``, generated ones included. The trees stay to the end: nothing
    searches them for garbage, which takes longer than to make them."""
    found = []
    gc.disable()
    try:
        for path in sorted(SOURCE.rglob("*.py")):
            parts = list(path.relative_to(SOURCE).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            text = path.read_text()
            found.append(Module(".".join(parts), path, text, ast.parse(text)))
        gc.freeze()
    finally:
        gc.enable()
    return tuple(found)


@cache
def written_modules() -> tuple[Module, ...]:
    """Every module that people wrote."""
    return tuple(module for module in modules() if not module.is_generated)


@cache
def project_files() -> tuple[Path, ...]:
    """Every file of the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(sorted({path for path in paths if path.is_file() and not path.is_symlink()}))


def functions(
    syntax: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function and method of a tree with its qualified name."""
    for node in ast.iter_child_nodes(syntax):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", node
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif not isinstance(node, ast.expr):
            yield from functions(node, prefix)


def report(problems: list[str]) -> str:
    """One failure message for everything that is wrong."""
    return "\n".join(["", *problems])
