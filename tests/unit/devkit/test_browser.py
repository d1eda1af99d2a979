"""The browser of the machine is found under the names that distributions give it."""

from __future__ import annotations

from pathlib import Path

import pytest
from devkit.browser import browser_arguments, known_browser

from tests.unit.devkit.test_system import put_program


def test_chromium_goes_before_chrome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert known_browser() is None
    for name in ("google-chrome", "chromium-browser", "chromium", "chromium-headless-shell"):
        put_program(tmp_path, name, "")
        assert known_browser() == tmp_path / name


@pytest.mark.parametrize(("user", "is_without_sandbox"), [(0, True), (1000, False)])
def test_only_root_starts_it_without_its_sandbox(
    monkeypatch: pytest.MonkeyPatch, user: int, is_without_sandbox: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert ("--no-sandbox" in browser_arguments()) is is_without_sandbox
    assert "--process-per-site" in browser_arguments()
