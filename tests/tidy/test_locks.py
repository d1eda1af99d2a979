"""The locks hold what pyproject.toml asks for, by hash, and agree with each other."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BROKER = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
PIPELINE = [*EXTRAS["spark"], *EXTRAS["s3"]]
ON_CLUSTERS = [text for text in PIPELINE if not text.startswith("pyspark")]
OURS = {"headgate", "pyspark-pulsar"}
WANTED = {
    "build": GROUPS["build"],
    "broker": BROKER,
    "lint": [*BROKER, *GROUPS["lint"]],
    "spark": [*BROKER, *EXTRAS["demo"], *ON_CLUSTERS],
    "dev": [*BROKER, *EXTRAS["demo"], *PIPELINE, *GROUPS["lint"], *GROUPS["test"]],
    "peer": GROUPS["peer"],
    "audit": GROUPS["audit"],
}


def _locked(lane: str) -> dict[str, set[str]]:
    """Each package of a lane with its versions: one, or one for each range of Pythons."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / f"locks/{lane}.txt").read_text().splitlines():
        match = re.match(r"([a-z0-9-]+)==(\S+)", line)
        if match:
            found.setdefault(match[1], set()).add(match[2])
    return found


@pytest.mark.parametrize("lane", WANTED)
def test_what_is_asked_for_is_locked(lane: str) -> None:
    locked = _locked(lane)
    for text in WANTED[lane]:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name in OURS:
            continue
        assert name in locked, f"./dev lock: {name} is not in locks/{lane}.txt"
        for version in locked[name]:
            assert version in requirement.specifier, f"./dev lock: {text} but {version} is locked"


@pytest.mark.parametrize("file", ["pyproject.toml", "distributions/pyspark-pulsar/pyproject.toml"])
def test_no_urllib3_is_allowed_that_unpacks_without_a_bound(file: str) -> None:
    """Before 2.6 gzip within gzip is unpacked at once, and before 2.8 the options of TLS of a pool
    end each request without TLS."""
    asked = tomllib.loads((ROOT / file).read_text())["project"]["dependencies"]
    found = next(each for text in asked if (each := Requirement(text)).name == "urllib3")
    assert not [old for old in ("2.5.0", "2.6.3", "2.7.0") if old in found.specifier]


@pytest.mark.parametrize("lane", WANTED)
def test_every_package_has_hashes_and_no_file_has_addresses(lane: str) -> None:
    text = (ROOT / f"locks/{lane}.txt").read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+ ", entry), entry[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry[:80]
    assert "://" not in text


@pytest.mark.parametrize(("small", "large"), [("broker", "lint"), ("lint", "dev")])
def test_each_lane_contains_the_one_below(small: str, large: str) -> None:
    larger = _locked(large)
    for name, versions in _locked(small).items():
        assert larger.get(name) == versions, name


def test_the_build_tools_agree_with_the_other_lanes() -> None:
    dev = _locked("dev")
    for name, versions in _locked("build").items():
        assert dev.get(name, versions) == versions, name
