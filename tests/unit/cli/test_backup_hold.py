"""The tool renews its lease, waits for one that was left behind, and says why a hold was lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.access.admin_api import AdminApi, UnreachableError
from headgate.access.client_config import ClientConfig
from headgate.app.backup.manifest import BackupError
from headgate.cli import backup_hold
from headgate.cli.backup_hold import RunningHold

URL = "http://broker"
API = AdminApi(ClientConfig(URL), {}, print)
ANSWER = {"id": "b1", "dataDirectory": "/d", "sourceDirectory": "/d/s", "leaseS": 30.0}
REFUSED = 409, json.dumps({"reason": "the disk became full"})


class Broker:
    """Answers in order; the last answer stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.asked: list[str] = []
        self.said: list[str] = []
        self.answers: list[Any] = [(200, json.dumps(ANSWER))]
        monkeypatch.setattr(backup_hold, "_ask", self._ask)

    def _ask(self, api: AdminApi, path: str, method: str) -> tuple[int, str]:
        assert api is API
        self.asked.append(f"{method} {path.removeprefix('/admin/v2/headgate/')}")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, text = answer
        return status, text

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def begin(self) -> RunningHold:
        return RunningHold.begin(API, lambda: self.now_s, self.sleep, self.said.append)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(monkeypatch)


def test_a_lease_is_renewed_when_it_is_due(broker: Broker) -> None:
    hold = broker.begin()
    assert (hold.data_path, hold.source_path) == ("/d", "/d/s")
    for _ in range(60):
        broker.now_s += 0.5
        hold.tick()
    assert broker.asked.count("PUT backup/b1") == 5
    hold.confirm()
    assert broker.asked[-1] == "DELETE backup/b1"


def test_it_waits_for_the_lease_of_a_killed_command(broker: Broker) -> None:
    broker.answers = [REFUSED, REFUSED, (200, json.dumps(ANSWER))]
    broker.begin()
    assert broker.now_s == 2
    assert broker.said == ["the disk became full"]


def test_it_does_not_speak_of_waiting_when_it_does_not_wait(broker: Broker) -> None:
    broker.begin()
    assert broker.said == []


def test_it_does_not_wait_for_ever(broker: Broker) -> None:
    broker.answers = [REFUSED]
    with pytest.raises(BackupError, match="does not begin a backup: the disk became full"):
        broker.begin()
    assert 30 < broker.now_s < 60


@pytest.mark.parametrize("text", ["", "<html>", "[]", "{}", json.dumps(ANSWER | {"leaseS": "x"})])
def test_what_is_no_broker_has_a_sentence(broker: Broker, text: str) -> None:
    broker.answers = [(200, text)]
    with pytest.raises(BackupError, match="http://broker answers as no broker does: "):
        broker.begin()


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}"])
def test_a_broker_without_the_route_is_no_riddle(broker: Broker, text: str) -> None:
    broker.answers = [(404, text)]
    with pytest.raises(BackupError, match="does not begin a backup: "):
        broker.begin()
    assert len(broker.asked) == 1


def test_a_lost_hold_ends_the_backup(broker: Broker) -> None:
    hold = broker.begin()
    broker.answers = [REFUSED]
    broker.now_s = 10
    for check in (hold.tick, hold.confirm):
        with pytest.raises(BackupError, match="no longer holds its files: the disk became full"):
            check()
    broker.answers = [UnreachableError("http://broker refuses the connection")]
    for check in (hold.tick, hold.confirm):
        with pytest.raises(BackupError, match="went away during the backup"):
            check()
    hold.abandon()


@pytest.mark.parametrize("text", ['{"reason": "no: Bearer s3cret"}', "x" * 188 + " Bearer s3cret"])
def test_a_secret_that_a_server_repeats_is_in_no_error(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(backup_hold, "_ask", lambda *_: (500, text))
    config = ClientConfig(URL, auth_plugin="token", auth_params="token:s3cret")
    api = AdminApi(config, {}, print)
    with pytest.raises(BackupError) as caught:
        RunningHold.begin(api, lambda: 0.0, lambda _: None, print)
    assert "s3c" not in str(caught.value)
