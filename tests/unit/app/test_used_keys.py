"""A changed file of keys or passwords has a warning, because what was read stays in force."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.app.used_keys import PERIOD_S, UsedKeys, key_files, key_files_of
from headgate.policy.settings import Settings
from headgate.testing.lanes import SimLane
from headgate.testing.loop import SimLoop


class Scene:
    """The passwords of a broker."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "users"
        self.loop = SimLoop()
        self.put("alice")

    def put(self, text: str, mode: int = 0o600) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.chmod(mode)
        new.replace(self.path)

    def keys(self) -> UsedKeys:
        files = key_files({"basicAuthConf": f"file://{self.path}"})
        return UsedKeys(files, SimLane(self.loop, random.Random(1)))

    def look(self, keys: UsedKeys) -> None:
        self.loop.run_until_complete(keys.look())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.loop.close()


def test_a_changed_file_has_one_warning_until_it_is_as_before(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    keys = scene.keys()
    scene.put("alice")  # another file with the same content
    scene.look(keys)
    assert not caplog.messages
    scene.put("bob")
    scene.look(keys)
    scene.look(keys)
    (line,) = caplog.messages
    assert line.startswith("basicAuthConf: the file has changed, and what was read")
    assert "bob" not in line
    assert "alice" not in line
    scene.put("alice")
    scene.look(keys)
    assert caplog.messages[1:] == ["basicAuthConf is again what it was at the start"]


def test_a_file_that_is_gone_or_that_others_may_read_is_named(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    keys = scene.keys()
    scene.path.unlink()
    scene.look(keys)
    scene.put("alice", mode=0o644)
    scene.look(keys)
    gone, read = caplog.messages
    assert "No such file" in gone
    assert "may be read or written by others" in read
    assert all("the next start would be refused" in line for line in (gone, read))


def test_it_looks_by_itself(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        keys = scene.keys()
        keys.start()
        scene.put("bob")
        await asyncio.sleep(2 * PERIOD_S + 1)
        keys.stop()

    with caplog.at_level(logging.WARNING):
        scene.loop.run_until_complete(run())
    assert len(caplog.messages) == 1


def test_only_files_that_authenticate_clients_are_watched(tmp_path: Path) -> None:
    literal = "data:;base64,AAAA"
    settings = Settings(
        authenticationEnabled=True,
        tokenSecretKey=literal,
        headgateTokenSecretKeyOther="/secret/other",
        tokenPublicKey="file:///keys/public",
        basicAuthConf="/users",
        headgateSignInClientSecretFile="/secret/client",  # read for each sign-in
    )
    found = {(file.setting, file.is_secret) for file in key_files_of(settings)}
    assert found == {
        ("headgateTokenSecretKeyOther", True), ("basicAuthConf", True), ("tokenPublicKey", False),
    }  # fmt: skip
    assert key_files_of(Settings(basicAuthConf="/users")) == []


def test_a_file_that_nobody_could_read_at_the_start_is_not_spoken_of(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.path.unlink()
    keys = scene.keys()
    scene.look(keys)
    assert not caplog.messages
