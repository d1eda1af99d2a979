"""Things stand where people look for them, and nothing of one machine stands anywhere."""

from __future__ import annotations

import ast
import re

from tests.tidy.tree import ROOT, Module, functions, project_files, report, written_modules

EXCEPTIONS = ROOT / "tests/tidy/without_own_test.txt"
OTHER_LANES = ("alerts", "conformance", "demo", "faults", "page", "service", "sim", "spark")

# Put together at run time, so that this file does not hold them.
MACHINE_PATHS = re.compile(
    "|".join(
        [
            r"(?<![\w.}])/" + "root/",
            r"(?<![\w.}])/" + r"home/\w+/",
            r"(?<![\w.}])/" + "work/(main|shared)",
            r"\.\./" + "shared",
        ]
    )
)
REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(host)
        for host in (
            "pypi" + ".org",
            "python" + "hosted.org",
            "npm" + "js.org",
            "crates" + ".io",
            "maven" + ".org",
            "maven.apache" + ".org",
            "deb.debian" + ".org",
            "proxy.golang" + ".org",
        )
    )
)
TEXT_SUFFIXES_NOT_READ = {".png", ".svg", ".gz", ".bin", ".ico"}


def test_every_module_has_a_test_of_its_own_name() -> None:
    """Or the list of exceptions names the test that plays it, where a wider seam tests it better.

    A module that only declares (constants, enumerations, fields, protocols) needs none.
    """
    exceptions = dict(_exceptions())
    tests = ROOT / "tests"
    tested = {
        path.relative_to(tests).as_posix() for path in project_files() if path.is_relative_to(tests)
    }
    problems = []
    names = set()
    for module in written_modules():
        if module.is_package or module.path.name == "__main__.py" or _only_declares(module):
            continue
        names.add(module.name)
        found = _has_own_test(module, tested)
        if not found and module.name not in exceptions:
            problems.append(f"{module.where} has no {_mirror(module)}")
        if found and module.name in exceptions:
            problems.append(f"{module.name} has a test now: take it out of {EXCEPTIONS.name}")
    problems += [
        f"{name} is played by {test}, which is gone"
        for name, test in exceptions.items()
        if test not in tested
    ]
    problems += [
        f"{name} is gone: take it out of {EXCEPTIONS.name}" for name in set(exceptions) - names
    ]
    assert not problems, report(problems)


def test_no_file_holds_the_paths_of_a_machine() -> None:
    assert not (problems := _search(MACHINE_PATHS)), report(problems)


def test_no_file_names_a_package_registry() -> None:
    assert not (problems := _search(REGISTRY_HOSTS)), report(problems)


def test_ci_runs_what_everybody_runs() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert [line for line in lines if "dev" in line] == ["exec ./dev test"]
    assert "run: ./dev test" in (ROOT / ".github/workflows/ci.yml").read_text()


def test_both_distributions_carry_the_same_licence() -> None:
    copy = ROOT / "distributions/pyspark-pulsar/LICENSE"
    assert copy.read_bytes() == (ROOT / "LICENSE").read_bytes()


def _exceptions() -> list[tuple[str, str]]:
    """Pairs of a module's name and the test under tests/ that plays it."""
    pairs = []
    for line in EXCEPTIONS.read_text().splitlines():
        if line and not line.startswith("#"):
            name, test = line.split()
            pairs.append((name, test))
    return pairs


def _mirror(module: Module) -> str:
    parts = module.name.removeprefix("headgate.").split(".")
    return "/".join(["unit", *parts[:-1], f"test_{parts[-1]}.py"])


def _has_own_test(module: Module, tested: set[str]) -> bool:
    """Whether its mirror exists, or is split in several (``test_<module>_<part>.py``)."""
    stem = _mirror(module).removesuffix(".py")
    name = stem.rsplit("/", 1)[-1]
    return any(
        path == f"{stem}.py"
        or path.startswith(f"{stem}_")
        or (path.startswith(OTHER_LANES) and path.endswith(f"/{name}.py"))
        for path in tested
    )


def _only_declares(module: Module) -> bool:
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for _, function in functions(module.syntax)
        for statement in function.body
    )


def _search(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in project_files():
        if path.suffix in TEXT_SUFFIXES_NOT_READ:
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    return found
