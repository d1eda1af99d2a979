"""Facts that the operating system shows of this machine."""

from __future__ import annotations

from pathlib import Path

from headgate.app.machine import boot_id, physical_memory_bytes, read_text


def test_a_boot_has_the_id_of_the_system(tmp_path: Path) -> None:
    path = tmp_path / "boot_id"
    path.write_text("0f1e2d3c-0000-4000-8000-000000000000\n", encoding="ascii")
    assert boot_id(str(path)) == "0f1e2d3c-0000-4000-8000-000000000000"


def test_a_boot_is_empty_where_the_system_has_no_id(tmp_path: Path) -> None:
    assert boot_id(str(tmp_path / "absent")) == ""


def test_a_boot_stays_while_the_machine_is_up() -> None:
    assert boot_id() == boot_id()


def test_a_file_that_cannot_be_read_is_none() -> None:
    assert read_text("/no/such/file") is None


def test_the_machine_has_memory() -> None:
    assert physical_memory_bytes() > 0
