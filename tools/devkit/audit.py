"""``./dev audit``: known vulnerabilities of all locked packages, and their list for each product.

pip-audit asks a service for the vulnerabilities. It takes a package of which the service knows
nothing for a good one, so that an audit without the service would pass: here such a package is one
that was not checked, and the audit fails. The lists (SBOM, CycloneDX) come from the locks and need
nothing but them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from devkit.console import DevError, Stage, say
from devkit.paths import DIST, LOCKS, ROOT
from devkit.processes import captured
from devkit.side_environment import ensure_side_environment

LOCK: Final = LOCKS / "audit.txt"
_LIMIT_S: Final = 600
PRODUCTS: Final = (("broker", "headgate-broker"), ("spark", "headgate-pipeline"))
"""What users install, by the lock that has its packages, and the name of its list in ``dist/``."""
_SHOWN_MAX: Final = 5


@dataclass(frozen=True)
class Findings:
    """What an audit of one lock found."""

    checked: int
    unchecked: Sequence[str]
    """Packages of which the service said nothing."""
    vulnerable: Sequence[str]
    """One line for each vulnerability."""


def audit(python: Path) -> int:
    """Write the lists and check every lock; 1 if a package has a known vulnerability or could not
    be checked.

    Raises:
        DevError: a program failed.
    """
    own = ensure_side_environment(python, "audit", LOCK, "packages of the audit")
    for lock, name in PRODUCTS:
        path = write_list(own, LOCKS / f"{lock}.txt", DIST / f"{name}.cdx.json")
        print(path.relative_to(ROOT))
    failed = [lock for lock in sorted(LOCKS.glob("*.txt")) if not _is_well(own, lock)]
    if failed:
        say(f"The audit failed for {', '.join(f'locks/{lock.name}' for lock in failed)}.")
    return 1 if failed else 0


def write_list(python: Path, lock: Path, path: Path) -> Path:
    """Write the packages of a lock, with versions and hashes, as CycloneDX; the same bytes for the
    same lock.

    Raises:
        DevError: the tool failed.
    """
    path.parent.mkdir(exist_ok=True)
    command = [
        str(python), "-W", "ignore", "-m", "cyclonedx_py", "requirements", str(lock),
        "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--of", "JSON",
        "-o", str(path),
    ]  # fmt: skip
    result = captured(command, _LIMIT_S)
    if result.returncode != 0:
        raise DevError(f"the list of locks/{lock.name} could not be made:\n{result.stderr}")
    return path


def _is_well(python: Path, lock: Path) -> bool:
    stage = Stage(f"checking locks/{lock.name}")
    command = [
        str(python), "-m", "pip_audit", "-r", str(lock), "--require-hashes", "--disable-pip",
        "--progress-spinner", "off", "--format", "json",
    ]  # fmt: skip
    result = captured(command, _LIMIT_S)
    try:
        found = findings(json.loads(result.stdout))
    except ValueError:
        stage.leave()
        last = (result.stderr.strip() or "no output").splitlines()[-1]
        say(f"  locks/{lock.name} was not checked: {last[:300]}")
        return False
    stage.done(f"{found.checked} checked, {len(found.vulnerable)} vulnerabilities")
    for line in found.vulnerable:
        say(f"  {line}")
    if found.unchecked:
        names = ", ".join(found.unchecked[:_SHOWN_MAX])
        more = f" and {len(found.unchecked) - _SHOWN_MAX} more"
        say(
            f"  The service of vulnerabilities knows nothing of {names}"
            f"{more * (len(found.unchecked) > _SHOWN_MAX)}, or cannot be reached: not checked."
        )
    return not found.unchecked and not found.vulnerable


def findings(report: dict[str, Any]) -> Findings:
    """What pip-audit's report says.

    Raises:
        ValueError: it is no such report.
    """
    packages = report.get("dependencies")
    if not isinstance(packages, list) or not packages:
        raise ValueError("no packages in the report")
    unchecked = [package["name"] for package in packages if "skip_reason" in package]
    vulnerable = []
    for package in packages:
        for found in package.get("vulns", ()):
            fixed = ", ".join(found.get("fix_versions", ())) or "no version"
            line = f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}"
            vulnerable.append(line)
    return Findings(len(packages) - len(unchecked), unchecked, vulnerable)
