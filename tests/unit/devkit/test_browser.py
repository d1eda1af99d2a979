"""The browser of the machine is found under the names that distributions give it."""

from __future__ import annotations

from pathlib import Path

import pytest
from devkit.browser import known_browser

from tests.unit.devkit.test_system import put_program


def test_chromium_goes_before_chrome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert known_browser() is None
    for name in ("google-chrome", "chromium-browser", "chromium"):
        put_program(tmp_path, name, "")
        assert known_browser() == tmp_path / name
