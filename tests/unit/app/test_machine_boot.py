"""The name of the machine's boot."""

from __future__ import annotations

from pathlib import Path

from headgate.app.machine_boot import machine_boot


def test_it_is_what_the_system_tells(tmp_path: Path) -> None:
    path = tmp_path / "boot_id"
    path.write_text("0f1e2d3c-0000-4000-8000-000000000000\n", encoding="ascii")
    assert machine_boot(str(path)) == "0f1e2d3c-0000-4000-8000-000000000000"


def test_where_the_system_tells_none_it_is_empty(tmp_path: Path) -> None:
    assert machine_boot(str(tmp_path / "absent")) == ""


def test_it_stays_while_the_machine_is_up() -> None:
    assert machine_boot() == machine_boot()
