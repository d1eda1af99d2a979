"""The file of revocations: read again when it changes, and never forgotten when it is lost."""

from __future__ import annotations

import math
import os
import random
from pathlib import Path

import pytest

from headgate.app.revocation_file import FILE_BYTES_MAX, RevocationFile
from headgate.base.errors import InputError
from headgate.security.revocation import Revocations
from headgate.testing.lanes import SimLane
from headgate.testing.loop import SimLoop


class Scene:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.loop = SimLoop()
        self.used: list[Revocations] = []
        self.written_ns = 1_000_000_000

    def write(self, text: str | bytes) -> None:
        """Replace the file, at a later time than before."""
        new = self.path.with_suffix(".new")
        new.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.written_ns += 1_000_000_000
        os.utime(new, ns=(self.written_ns, self.written_ns))
        new.rename(self.path)

    def open(self) -> RevocationFile:
        lane = SimLane(self.loop, random.Random(1))
        return RevocationFile(str(self.path), lane, self.used.append)

    def check(self, file: RevocationFile) -> None:
        self.loop.run_until_complete(file.check())

    @property
    def roles(self) -> list[str]:
        return sorted(self.used[-1].roles)


@pytest.fixture
def scene(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = Scene(tmp_path / "revoked")
    yield made
    made.loop.close()


def test_a_file_that_changes_while_the_broker_starts_is_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.write("role a\n")
    look = RevocationFile._look

    def look_and_change(file: RevocationFile) -> tuple[int, int, int]:
        seen = look(file)
        scene.write("role a\nrole b\n")
        return seen

    monkeypatch.setattr(RevocationFile, "_look", look_and_change)
    scene.open()
    assert scene.roles == ["a", "b"]


def test_it_is_read_at_the_start(scene: Scene) -> None:
    scene.write("role a\ntoken t until 2027-01-15T08:00:00Z\n")
    scene.open()
    (found,) = scene.used
    assert found.roles == {"a": math.inf}
    assert found.token_ids == {"t": 1_800_000_000}


def test_a_change_is_read_when_it_is_complete(scene: Scene) -> None:
    scene.write("role a\n")
    file = scene.open()
    scene.check(file)
    scene.write("role a\n")  # half of it
    scene.check(file)
    scene.write("role a\nrole b\n")
    scene.check(file)
    assert len(scene.used) == 1
    scene.check(file)
    assert scene.roles == ["a", "b"]
    scene.check(file)
    assert len(scene.used) == 2


def test_a_lost_file_leaves_the_last_entries(scene: Scene) -> None:
    scene.write("role a\n")
    file = scene.open()
    scene.path.unlink()
    for _ in range(2):
        with pytest.raises(InputError, match="revoked cannot be read: No such file"):
            scene.check(file)
    assert len(scene.used) == 1
    scene.write("role b\n")
    scene.check(file)
    scene.check(file)
    assert scene.roles == ["b"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("role a\nwho b\n", "line 2: 'who' is neither role nor token"),
        (b"role \xff\n", r"is not UTF-8 text \(byte 5\)"),
        (b"#" * (FILE_BYTES_MAX + 1), "is too long: 16,777,216 bytes are allowed"),
    ],
)
def test_a_file_with_an_error_leaves_the_last_entries(
    scene: Scene, content: str | bytes, why: str
) -> None:
    scene.write("role a\n")
    file = scene.open()
    scene.write(content)
    scene.check(file)
    for _ in range(3):
        with pytest.raises(InputError, match=f"headgateRevocationFile=.*{why}"):
            scene.check(file)
    assert scene.roles == ["a"]
    scene.write("role b\n")
    scene.check(file)
    scene.check(file)
    assert scene.roles == ["b"]
    scene.write(content)
    with pytest.raises(InputError, match=why):
        scene.open()


def test_an_error_is_read_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.write("role a\n")
    file = scene.open()
    scene.write("nonsense\n")
    scene.check(file)
    with pytest.raises(InputError):
        scene.check(file)
    monkeypatch.setattr(file, "_read", None)  # a second read would fail
    with pytest.raises(InputError, match="neither role nor token"):
        scene.check(file)


def test_a_start_without_the_file_is_refused(scene: Scene, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        scene.open()
    scene.path = tmp_path
    with pytest.raises(InputError, match="is no file"):
        scene.open()


def test_a_start_refuses_a_file_that_everybody_may_write(scene: Scene) -> None:
    scene.write("role a\n")
    scene.path.chmod(0o666)
    with pytest.raises(InputError, match=r"may be written by everybody .* chmod 644"):
        scene.open()
    scene.path.chmod(0o664)
    file = scene.open()
    scene.write("role b\n")
    scene.path.chmod(0o666)  # what is revoked meanwhile is revoked
    scene.check(file)
    scene.check(file)
    assert scene.roles == ["b"]
