"""``headgate demo --secured``: some of its situations on brokers that ask for credentials."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pulsar
import pytest

from headgate.demo.admin import AdminCallError, AdminClient
from headgate.demo.credentials import (
    ADMIN,
    CONSUMER,
    GRANTS,
    PIPELINE,
    PRODUCER,
    Credentials,
    new_credentials,
)
from headgate.demo.scenes import MAIN, SCENES, subjects
from headgate.demo.stage import Stage
from headgate.pipeline.options import TELEMETRY_TOPIC
from tests.service.clients import client_of, wait_until

_SECONDS = 10.0
_PLAYED = tuple(each for each in SCENES if each.name in ("healthy", "relative-limit"))
"""The smallest one, and the one whose backlog an earlier broker took."""
_HEALTHY, _OLD = (next(s for s, scene in subjects(_PLAYED) if scene is each) for each in _PLAYED)


@pytest.fixture(autouse=True)
def _keep_the_switch_interval() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)


@pytest.fixture
def credentials(tmp_path: Path) -> Credentials:
    return new_credentials(tmp_path / "credentials")


@pytest.fixture
def stage(
    tmp_path: Path, credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    # The tests' process keeps its priority.
    monkeypatch.setattr("headgate.demo.stage._raise_priority", lambda: None)
    with Stage(tmp_path, _PLAYED, _SECONDS, credentials=credentials) as made:
        made.start_brokers()
        yield made


def _tokens(credentials: Credentials) -> dict[str, str]:
    return {role: Path(path).read_text().strip() for role, path in credentials.token_paths.items()}


def _arguments(text: str) -> list[str]:
    """Command lines of all processes that have ``text`` in theirs."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile, or is no process
        if text in line:
            found.append(line)
    return found


def test_situations_develop_as_without_credentials(
    stage: Stage, credentials: Credentials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = _tokens(credentials)
    assert stage.explain()[_OLD].backlog == _PLAYED[1].old_backlog(_SECONDS, 0.0)
    stage.connect_clients()
    stage.start_publishing()
    admin = stage.admin(MAIN)
    wait_until(lambda: admin.stats(_HEALTHY.topic)["msgOutCounter"] > 20)
    wait_until(lambda: stage.limit_snapshot(_OLD).delivered > 20)
    assert set(stage.scrape()) == {_HEALTHY, _OLD}
    # The command reads the file of credentials, whatever the user's environment has for others.
    monkeypatch.setenv("HEADGATE_TOKEN", "of-another-broker")
    monkeypatch.setenv("HEADGATE_PROFILE", "another")
    assert _HEALTHY.text.partition(" / ")[0] in stage.explain_text(_HEALTHY, 96)
    clients = _arguments(f"{tmp_path}/credentials")
    assert len(clients) == 2
    for line in clients:
        assert not [role for role, token in tokens.items() if token in line]
    stage.end_clients()
    assert _arguments(f"{tmp_path}/credentials") == []
    wait_until(lambda: not admin.stats(_HEALTHY.topic)["publishers"])
    assert stage.explain(), "the brokers go on, without their clients"
    for log in tmp_path.glob("*.log"):
        assert not [role for role, token in tokens.items() if token in log.read_text()]


def _may(act: Callable[[], object]) -> bool:
    """Whether a client succeeds."""
    try:
        act()
    except pulsar.AuthorizationError:
        return False
    return True


def test_a_role_may_do_its_part_and_nothing_else(stage: Stage, credentials: Credentials) -> None:
    urls = stage.urls[MAIN]
    for nobody in (AdminClient(MAIN, urls.web), AdminClient(MAIN, urls.web, {"X": "y"})):
        with pytest.raises(AdminCallError, match=r"/stats: 401 "):
            nobody.stats(_HEALTHY.topic)
        nobody.close()
    expected = {
        ADMIN: (True, True, True), PRODUCER: (True, False, False),
        CONSUMER: (False, True, False), PIPELINE: (False, False, True),
    }  # fmt: skip
    assert set(expected) == {ADMIN, *GRANTS}
    for role, token in _tokens(credentials).items():
        with client_of(urls.broker, authentication=pulsar.AuthenticationToken(token)) as client:
            found = (
                _may(lambda: client.create_producer(_HEALTHY.topic)),
                _may(lambda: client.subscribe(_HEALTHY.topic, _HEALTHY.subscription)),
                _may(lambda: client.subscribe(TELEMETRY_TOPIC, "reads")),
            )
        assert found == expected[role], role
