"""Certificates of clients take little memory, also in the sessions that OpenSSL keeps."""

from __future__ import annotations

import gc
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.app.tls import client_chains
from headgate.app.tls.client_chains import CHAIN_BYTES_MAX, LongChainError
from headgate.app.tls.handshake_steps import put_off
from headgate.app.tls.profile import Profile
from tests.trial_certificates import Trial

NEW, OLD = ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2


class Pair:
    """Both ends of a connection in memory."""

    def __init__(
        self,
        server: ssl.SSLContext,
        client: ssl.SSLContext,
        session: ssl.SSLSession | None = None,
    ) -> None:
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(up, down, server_side=True)
        self.client = client.wrap_bio(down, up, server_hostname="localhost", session=session)

    def shake_hands(self) -> None:
        self._until_done(self.client.do_handshake, self.server.do_handshake)

    def end(self) -> None:
        """The client ends the connection, and then the server."""
        for end in (self.client, self.server):
            try:
                end.unwrap()
            except ssl.SSLWantReadError:
                continue

    @property
    def is_told(self) -> bool:
        """Whether the client was told that the connection ends."""
        try:
            return self.client.read() == b""
        except ssl.SSLZeroReturnError:
            return True
        except ssl.SSLWantReadError:
            return False

    @staticmethod
    def _until_done(*steps: Callable[[], None]) -> None:
        left = list(steps)
        while left:
            for step in list(left):
                try:
                    step()
                except ssl.SSLWantReadError:
                    continue
                left.remove(step)


def server_of(trial: Trial) -> ssl.SSLContext:
    context = Profile().new_context()
    context.load_cert_chain(trial.folder / "server.cert.pem", trial.folder / "server.key.pem")
    context.load_verify_locations(trial.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def client_of(trial: Trial, version: ssl.TLSVersion, more_bytes: int = 0) -> ssl.SSLContext:
    """One with a certificate, behind which the authority's follows as often as asked for."""
    context = ssl.create_default_context(cafile=trial.ca)
    context.minimum_version = context.maximum_version = version
    if more_bytes < 0:
        return context
    own, key = trial.client("admin")
    others = Path(trial.ca).read_text()
    chain = trial.folder / "chain.pem"
    chain.write_text(Path(own).read_text() + others * (more_bytes // len(others)))
    context.load_cert_chain(chain, key)
    return context


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_chain_has_a_bound(tmp_path: Path, version: ssl.TLSVersion) -> None:
    trial = Trial(tmp_path)
    server = server_of(trial)
    Pair(server, client_of(trial, version, CHAIN_BYTES_MAX // 2)).shake_hands()
    with pytest.raises(LongChainError) as refusal:
        Pair(server, client_of(trial, version, CHAIN_BYTES_MAX)).shake_hands()
    assert f"bytes, {CHAIN_BYTES_MAX:,} are allowed" in refusal.value.reason
    del refusal
    gc.collect()
    assert server.session_stats()["number"] == 0


def test_few_sessions_with_certificates_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_chains, "SESSIONS_KEPT", 3)
    trial = Trial(tmp_path)
    server, client = server_of(trial), client_of(trial, OLD)
    told = []
    for _ in range(8):
        pair = Pair(server, client)
        pair.shake_hands()
        pair.end()
        told.append(pair.is_told)
        del pair
        gc.collect()
    assert server.session_stats()["number"] == 3
    assert told == [True] * 3 + [False] * 5


@pytest.mark.parametrize(("version", "more_bytes"), [(OLD, -1), (NEW, 0)])
def test_others_are_told_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion, more_bytes: int
) -> None:
    monkeypatch.setattr(client_chains, "SESSIONS_KEPT", 0)
    trial = Trial(tmp_path)
    server, client = server_of(trial), client_of(trial, version, more_bytes)
    for _ in range(2):
        pair = Pair(server, client)
        pair.shake_hands()
        pair.end()
        assert pair.is_told


def test_a_session_that_is_kept_can_be_resumed(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    server, client = server_of(trial), client_of(trial, OLD)
    first = Pair(server, client)
    first.shake_hands()
    first.end()
    second = Pair(server, client, first.client.session)
    second.shake_hands()
    assert second.client.session_reused
    assert second.server.getpeercert() == first.server.getpeercert()


def steps_elsewhere(pair: Pair) -> list[bool]:
    """What the steps of the server return, each of which is put off."""
    outcomes = list[bool]()

    def step() -> None:
        later = list[Callable[[], bool]]()
        token = put_off.set(later)
        try:
            pair.server.do_handshake()
        finally:
            put_off.reset(token)
            outcomes.extend(take() for take in later)

    try:
        Pair._until_done(pair.client.do_handshake, step)
    except ssl.SSLError:  # at one of both ends
        outcomes.append(False)
    return outcomes


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_step_elsewhere_tells_whether_a_certificate_is_proven(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    trial = Trial(tmp_path)
    server = server_of(trial)
    *others, last = steps_elsewhere(Pair(server, client_of(trial, version)))
    assert last
    assert not any(others)
    assert not any(steps_elsewhere(Pair(server, client_of(trial, version, -1))))
    (tmp_path / "strange").mkdir()
    strange = client_of(Trial(tmp_path / "strange"), version)
    strange.load_verify_locations(trial.ca)
    assert not any(steps_elsewhere(Pair(server, strange)))
