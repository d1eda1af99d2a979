from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pulsar
import pytest

from pyspark_pulsar import client
from pyspark_pulsar.access import Access
from pyspark_pulsar.client import ReadSettings, native_reader, open_reader, shared_client
from pyspark_pulsar.errors import AccessError, ReadTimeoutError
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.options import Connection
from pyspark_pulsar.ranges import DueEntries, ReadRange
from tests.unit.pyspark_pulsar.fakes import FakeReader

T = "persistent://public/default/t"
CONNECTION = Connection("pulsar://h:1", "http://h:2", 1_000, 1_000)
WORK = ReadRange(T, earliest(T), Position(3, 1), (DueEntries(3, 0, 1, 100.0),))
SETTINGS = ReadSettings(CONNECTION, None, None, True, None, 5_000)


class FailingClient:
    """Raises what it is told to, in order, and then opens readers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def create_reader(self, *_given: object, **_more: object) -> FakeReader:
        if self.errors:
            raise self.errors.pop(0)
        return FakeReader([])


class Time:
    """Passes by sleeping alone."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """Opens a reader by a client that first fails; returns the seconds that it took."""

    def run(*errors: Exception) -> float:
        fake, clock = FailingClient(*errors), Time()
        monkeypatch.setattr(client, "check_credentials", lambda *_: None)
        monkeypatch.setitem(client._clients, (os.getpid(), CONNECTION), fake)  # type: ignore[arg-type]
        open_reader(WORK, SETTINGS, monotonic=lambda: clock.now_s, sleep=clock.sleep)
        return clock.now_s

    return run


@pytest.mark.parametrize("listens", [False, True])
@pytest.mark.parametrize(
    ("start", "first"),
    [
        (Position(-1, -1), None),
        (Position(3, -1), (3, 0, -1)),
        (Position(3, 4), (3, 5, -1)),
        (Position(3, 4, -1, 2), (3, 4, 2)),
    ],
)
def test_how_a_reader_is_opened(
    monkeypatch: pytest.MonkeyPatch,
    start: Position,
    first: tuple[int, int, int] | None,
    listens: bool,
) -> None:
    """It begins behind what is read: brokers send the entry at which it begins. One that listens
    prefetches nothing."""
    given: list[tuple[str, dict[str, object]]] = []

    class Noting(FailingClient):
        def create_reader(self, *words: object, **how: object) -> FakeReader:
            given.append((str(words[1]), how))
            return FakeReader([])

    monkeypatch.setitem(client._clients, (os.getpid(), CONNECTION), Noting())  # type: ignore[arg-type]

    def listener(*_: object) -> None: ...

    open_reader(WORK, SETTINGS, start, listener=listener if listens else None)
    wanted: dict[str, object] = {
        "receiver_queue_size": 1 if listens else 1_000,
        "crypto_failure_action": pulsar.ConsumerCryptoFailureAction.DISCARD,
    }
    if listens:
        wanted["reader_listener"] = listener
    if first is not None:
        wanted["start_message_id_inclusive"] = True
    id_ = pulsar.MessageId.earliest if first is None else pulsar.MessageId(-1, *first)
    assert given == [(str(id_), wanted)]


def test_the_clients_python_layer_is_avoided_where_possible() -> None:
    class Wrapper:
        def __init__(self, inner: object) -> None:
            self._reader = inner

    native = FakeReader([])
    assert native_reader(Wrapper(native)) is native
    assert native_reader(native) is native
    otherwise = Wrapper(None)
    assert native_reader(otherwise) is otherwise


def test_each_process_has_one_client_per_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(url: str, **_options: object) -> object:
        made.append(url)
        return object()

    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setattr(client, "check_credentials", lambda *_: None)
    monkeypatch.setattr(pulsar, "Client", make)
    assert shared_client(CONNECTION) is shared_client(CONNECTION)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    shared_client(CONNECTION)
    assert made == ["pulsar://h:1", "pulsar://h:1"]


def test_temporary_failures_are_retried(opened: Callable[..., float]) -> None:
    assert opened() == 0
    assert opened(pulsar.ConnectError("ConnectError"), pulsar.Timeout("TimeOut")) == 2


def test_waiting_ends_and_the_error_names_the_cause(opened: Callable[..., float]) -> None:
    with pytest.raises(
        ReadTimeoutError,
        match=r"t: pulsar://h:1 opened no reader within 5000 ms \(pollTimeoutMs\): ConnectError",
    ):
        opened(*(pulsar.ConnectError("ConnectError") for _ in range(20)))


def test_refused_credentials_end_at_once(opened: Callable[..., float]) -> None:
    with pytest.raises(AccessError, match=r"refuses access to .*/t \(no\): set the options"):
        opened(pulsar.AuthenticationError("no"))
    with pytest.raises(pulsar.TopicNotFound):
        opened(pulsar.TopicNotFound("no"))


def test_the_client_gets_its_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[dict[str, object]] = []
    tokens: list[Callable[[], str]] = []

    class Token(pulsar.AuthenticationToken):
        def __init__(self, token: Callable[[], str]) -> None:
            tokens.append(token)
            super().__init__(token)

    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setattr(client, "check_credentials", lambda *_: None)
    monkeypatch.setattr(pulsar, "Client", lambda _url, **options: made.append(options) or object())
    monkeypatch.setattr(pulsar, "AuthenticationToken", Token)
    path = tmp_path / "token"
    path.write_text("first\n")
    access = Access(token_path=str(path), verify_hostname=False)
    shared_client(Connection("pulsar+ssl://h:1", "https://h:2", 1_000, 1_000, access))
    assert made[0]["tls_validate_hostname"] is False
    assert made[0]["tls_allow_insecure_connection"] is False
    assert tokens[0]() == "first"
    path.write_text("second")
    assert tokens[0]() == "second"
    path.unlink()
    assert tokens[0]() == "second", "no exception reaches the client's thread"
    missing = Access(token_path=str(path))
    with pytest.raises(AccessError, match="cannot be read: No such file"):
        shared_client(Connection("pulsar://h:1", "http://h:2", 1_000, 1_000, missing))


@pytest.mark.parametrize(
    ("access", "kind", "given"),
    [
        (Access(password="u:p"), "AuthenticationBasic", ("u", "p")),
        (Access(certificate_path="/c", key_path="/k"), "AuthenticationTLS", ("/c", "/k")),
        (Access(), "none", ()),
    ],
)
def test_the_clients_own_objects_for_credentials(
    monkeypatch: pytest.MonkeyPatch, access: Access, kind: str, given: tuple[str, ...]
) -> None:
    made: list[tuple[str, tuple[str, ...]]] = []
    for name in ("AuthenticationBasic", "AuthenticationTLS", "AuthenticationToken"):
        monkeypatch.setattr(
            pulsar, name, lambda *words, name=name: made.append((name, words)) or name
        )
    assert client._authentication(access) == (kind if given else None)
    assert made == ([(kind, given)] if given else [])


def test_a_certificate_goes_beside_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, object]] = []
    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setattr(client, "check_credentials", lambda *_: None)
    monkeypatch.setattr(Access, "check_files", lambda _: None)
    monkeypatch.setattr(pulsar, "Client", lambda _url, **options: made.append(options) or object())
    access = Access(token="t", certificate_path="/c", key_path="/k")
    shared_client(Connection("pulsar+ssl://h:1", "https://h:2", 1_000, 1_000, access))
    assert isinstance(made[0]["authentication"], pulsar.AuthenticationToken)
    names = ("tls_certificate_file_path", "tls_private_key_file_path")
    assert [made[0][name] for name in names] == ["/c", "/k"]
