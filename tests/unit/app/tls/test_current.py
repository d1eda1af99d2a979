"""New files come into force for new connections; broken ones do not, and are logged once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from headgate.app.tls.current import (
    CurrentTls,
    expiry_bound,
    first_to_end,
    validity_sentence,
)
from headgate.base.errors import InputError
from headgate.base.units import S_PER_DAY
from headgate.broker.tls_status import TlsStatus
from headgate.policy.settings import Settings
from headgate.security.certificates import CertificateFacts
from tests.trial_certificates import Trial


def settings_of(trial: Trial) -> Settings:
    settings = Settings()
    for key, value in trial.settings.items():
        settings.set(key, value)
    return settings


def look(current: CurrentTls, status: TlsStatus, now_s: float) -> None:
    try:
        loaded = current.read_changed()
    except InputError as error:
        current.keep(error, status, now_s)
    else:
        current.take(loaded, status, now_s)


def test_without_a_port_nothing_is_read() -> None:
    assert CurrentTls.open(Settings(tlsCertificateFilePath="/not/there")) is None


def test_changed_files_come_into_force(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trial, status = Trial(tmp_path), TlsStatus()
    current = CurrentTls.open(settings_of(trial))
    assert current is not None
    current.report(status, 0.0)
    now_s = float((status.expires_at_s or 0) - 90 * S_PER_DAY)
    before = current.binary("")
    assert current.web("") is not before
    look(current, status, now_s)
    assert (current.binary(""), status.reloads, status.problem) == (before, 0, "")
    trial.renew_server(40)
    with caplog.at_level(logging.INFO, "headgate.tls"):
        look(current, status, now_s)
    assert current.binary("") is not before
    assert status.reloads == 1
    assert "new files of TLS are in force for new connections: CN=localhost, valid for" in (
        caplog.text
    )


def test_broken_files_stay_out_and_are_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial, status = Trial(tmp_path), TlsStatus()
    current = CurrentTls.open(settings_of(trial))
    assert current is not None
    current.report(status, 0.0)
    now_s = float((status.expires_at_s or 0) - 60 * S_PER_DAY)
    before, key = current.binary(""), tmp_path / "server.key.pem"
    whole = key.read_bytes()
    key.write_bytes(whole[:50])
    caplog.clear()
    for _ in range(3):
        look(current, status, now_s)
    assert current.binary("") is before
    assert (status.reloads, status.reload_failures) == (0, 3)
    assert status.problem.startswith("changed files of TLS cannot be used, and those of before")
    assert len(caplog.records) == 1
    key.write_bytes(whole)
    look(current, status, now_s)
    assert status.problem == ""
    assert caplog.records[-1].getMessage() == (
        "the files of TLS are as before: they can be used again"
    )


FACTS = CertificateFacts("CN=b", 0, 100 * S_PER_DAY)


@pytest.mark.parametrize(
    ("now_s", "bound"),
    [
        (0, None), (69 * S_PER_DAY, None), (70 * S_PER_DAY, 30), (92 * S_PER_DAY, 30),
        (93 * S_PER_DAY, 7), (99 * S_PER_DAY, 1), (100 * S_PER_DAY - 1, 1), (100 * S_PER_DAY, 0),
        (-1, 0),
    ],
)  # fmt: skip
def test_bounds_of_what_is_left(now_s: int, bound: int | None) -> None:
    assert expiry_bound(FACTS, now_s) == bound


def test_of_several_certificates_the_first_to_end_is_reported() -> None:
    later = CertificateFacts("CN=later", 0, 200 * S_PER_DAY)
    future = CertificateFacts("CN=future", 50 * S_PER_DAY, 300 * S_PER_DAY)
    assert first_to_end([later, FACTS], 1) is FACTS
    assert first_to_end([later, FACTS, future], 1) is future
    assert first_to_end([later, FACTS, future], 60 * S_PER_DAY) is FACTS


def test_a_changed_certificate_of_another_name_comes_into_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial, status = Trial(tmp_path), TlsStatus()
    certificate, key = trial.server("other", "other.example", days=50)
    settings = settings_of(trial)
    settings.headgateTlsSniCertificateFilePaths = certificate
    settings.headgateTlsSniKeyFilePaths = key
    current = CurrentTls.open(settings)
    assert current is not None
    current.report(status, 0.0)
    now_s = float((status.expires_at_s or 0) - 49 * S_PER_DAY)
    before = current.binary("other.example"), current.web("other.example")
    assert current.binary("") not in before
    trial.server("other", "new.example", days=40)
    with caplog.at_level(logging.INFO, "headgate.tls"):
        look(current, status, now_s)
    assert status.reloads == 1
    assert current.binary("other.example") is current.binary("")
    assert current.web("new.example") not in (*before, current.web(""))
    Path(key).write_bytes(b"no key")
    look(current, status, now_s)
    assert current.web("new.example") is not current.web("")
    assert f"headgateTlsSniKeyFilePaths={key} has no private key" in status.problem


def test_what_is_left_in_words() -> None:
    assert validity_sentence(FACTS, 93 * S_PER_DAY).endswith("CN=b expires in 7 days")
    assert validity_sentence(FACTS, 99 * S_PER_DAY).endswith("CN=b expires in 24 hours")
    assert "has expired 2 days ago: clients refuse it" in validity_sentence(FACTS, 102 * S_PER_DAY)
    assert "is not valid yet: it begins in 2 days" in validity_sentence(FACTS, -2 * S_PER_DAY)


def test_a_certificate_that_ends_is_logged_at_each_bound(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    status, trial = TlsStatus(), Trial(tmp_path)
    current = CurrentTls.open(settings_of(trial))
    assert current is not None
    current.report(status, 0.0)
    end_s = status.expires_at_s or 0
    caplog.clear()
    with caplog.at_level(logging.WARNING, "headgate.tls"):
        for days in (40, 30, 29, 8, 7, 6, 1, 0.5, -1, -2):
            current.report(status, end_s - days * S_PER_DAY)
            assert bool(status.problem) == (days <= 7)
    words = ["30 days", "7 days", "24 hours", "expired 24 hours"]
    assert len(caplog.records) == len(words)
    for record, word in zip(caplog.records, words, strict=True):
        assert word in record.getMessage()
