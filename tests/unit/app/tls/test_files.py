"""Files of TLS load entirely or not at all, and each refusal names setting, file and cause."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from headgate.app.tls.files import ChangedMeanwhileError, TlsFiles, load
from headgate.app.tls.profile import Profile
from headgate.base.errors import InputError
from headgate.policy.settings import Settings
from tests.trial_certificates import Trial

PROFILES = (Profile(), Profile())


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path / "certs")


def files_of(trial: Trial, **more: object) -> TlsFiles:
    settings = Settings()
    for key, value in trial.settings.items():
        settings.set(key, value)
    for key, other in more.items():
        setattr(settings, key, other)
    return TlsFiles.of(settings)


def refusal(files: TlsFiles) -> str:
    with pytest.raises(InputError) as caught:
        load(files, PROFILES, files.read())
    return str(caught.value)


def test_contexts_ask_for_certificates_as_the_settings_say(trial: Trial) -> None:
    for more, mode in (
        ({}, ssl.CERT_OPTIONAL),
        ({"tlsRequireTrustedClientCertOnConnect": True}, ssl.CERT_REQUIRED),
        ({"tlsTrustCertsFilePath": ""}, ssl.CERT_NONE),
    ):
        files = files_of(trial, **more)
        loaded = load(files, PROFILES, files.read())
        found = [{context.verify_mode for context in port.all} for port in loaded.contexts]
        assert found == [{mode}, {mode}]
        (facts,) = loaded.facts
        assert facts.subject == "CN=localhost"
        left = facts.expires_at_s - datetime.now(UTC).timestamp()
        assert 89 < left / 86_400 < 91


def test_settings_that_contradict_each_other(trial: Trial) -> None:
    with pytest.raises(InputError, match="TLS needs tlsKeyFilePath, which is not set"):
        files_of(trial, tlsKeyFilePath="")
    with pytest.raises(InputError, match=r"^brokerServicePortTls: TLS needs tlsCertificateFile"):
        files_of(trial, webServicePortTls=-1, tlsCertificateFilePath="")
    with pytest.raises(InputError, match="OnConnect=true needs tlsTrustCertsFilePath"):
        files_of(trial, tlsRequireTrustedClientCertOnConnect=True, tlsTrustCertsFilePath="")


def test_a_key_that_others_may_read(trial: Trial) -> None:
    key = trial.folder / "server.key.pem"
    key.chmod(0o640)
    text = refusal(files_of(trial))
    assert text == (
        f"tlsKeyFilePath: {key} may be read or written by others (mode 0640): chmod 600 {key}"
    )


def test_missing_and_damaged_files(trial: Trial) -> None:
    files = files_of(trial)
    key, certificate = trial.folder / "server.key.pem", trial.folder / "server.cert.pem"
    whole = key.read_bytes()
    for data, text in (
        (whole[: len(whole) // 2], f"tlsKeyFilePath={key} has no private key in PEM"),
        (b"", f"tlsKeyFilePath: {key} has 0 bytes"),
        (certificate.read_bytes(), f"tlsKeyFilePath={key} has no private key in PEM"),
    ):
        key.write_bytes(data)
        assert refusal(files).startswith(text)
    key.unlink()
    assert refusal(files) == f"tlsKeyFilePath: {key} cannot be read: No such file or directory"
    trial.renew_server()
    certificate.write_text("no certificate")
    assert f"tlsCertificateFilePath={certificate} has no certificate in PEM" in refusal(files)
    trial.renew_server()
    Path(trial.ca).write_text("no certificate")
    assert f"tlsTrustCertsFilePath={trial.ca} has no certificate in PEM" in refusal(files)


def test_keys_that_do_not_fit(trial: Trial) -> None:
    files = files_of(trial)
    key = trial.folder / "server.key.pem"
    other = Path(trial.client("admin")[1]).read_bytes()
    own = load_pem_private_key(key.read_bytes(), password=None)
    secret = BestAvailableEncryption(b"secret")
    encrypted = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret)
    short = rsa.generate_private_key(65_537, 1_024).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    for data, text in (
        (other, "is not the key of the certificate"),
        (encrypted, "is encrypted with a password"),
        (short, "has an RSA key of 1,024 bits: 2,048 or more are allowed"),
    ):
        key.write_bytes(data)
        assert f"tlsKeyFilePath={key} {text}" in refusal(files)


def test_a_file_that_changes_while_it_is_read(trial: Trial) -> None:
    files = files_of(trial)
    before = files.read()
    os.utime(trial.folder / "server.key.pem")
    assert load(files, PROFILES, before).contents == before
    trial.renew_server()
    with pytest.raises(InputError):
        load(files, PROFILES, before)
    now = files.read()
    stale = now._replace(trust=now.trust + b"\n")
    with pytest.raises(ChangedMeanwhileError):
        load(files, PROFILES, stale)


def with_others(trial: Trial, *pairs: tuple[str, str]) -> TlsFiles:
    return files_of(
        trial,
        headgateTlsSniCertificateFilePaths=", ".join(certificate for certificate, _ in pairs),
        headgateTlsSniKeyFilePaths=", ".join(key for _, key in pairs),
    )


def test_certificates_by_name(trial: Trial) -> None:
    """The first pair with a name has it, an exact name comes before a pattern, and no other name
    fails."""
    files = with_others(
        trial,
        trial.server("a", "a.example", "localhost"),
        trial.server("star", "*.star.example", "a.example"),
        trial.server("exact", "Exact.star.example"),
    )
    loaded = load(files, PROFILES, files.read())
    own, a = loaded.contexts, loaded.by_name["a.example"]
    star, exact = loaded.by_name["*.star.example"], loaded.by_name["exact.star.example"]
    assert len({id(each) for each in (own, a, star, exact)}) == 4
    for name, expected in (
        ("a.example", a), ("x.star.example", star), ("exact.star.example", exact),
        ("localhost", own), ("broker.example", own), ("", own), ("star.example", own),
        ("x.y.star.example", own), (".star.example", star), ("*", own), ("unknown", own),
    ):  # fmt: skip
        assert loaded.contexts_of(name) is expected, name
    assert [len(contexts) for contexts in (own, a, star, exact)] == [2] * 4
    assert all(context.verify_mode is ssl.CERT_OPTIONAL for port in exact for context in port.all)
    assert len(loaded.facts) == 4


def test_other_certificates_that_cannot_be_used(trial: Trial) -> None:
    certificate, key = trial.server("a", "a.example")
    other_key = trial.server("b", "b.example")[1]
    with pytest.raises(InputError) as caught:
        files_of(trial, headgateTlsSniCertificateFilePaths=certificate)
    assert str(caught.value) == (
        "headgateTlsSniCertificateFilePaths names 1 files and headgateTlsSniKeyFilePaths 0: each "
        "certificate has its key at the same place"
    )
    with pytest.raises(InputError, match="names 101 files: 100 are allowed"):
        with_others(trial, *[(certificate, key)] * 101)
    text = refusal(with_others(trial, (certificate, other_key)))
    assert text == f"headgateTlsSniKeyFilePaths={other_key} is not the key of the certificate"
    text = refusal(with_others(trial, trial.client("admin")))
    assert "has no DNS name among its subject alternative names" in text
    Path(key).chmod(0o644)
    text = refusal(with_others(trial, (certificate, key)))
    assert text.startswith(f"headgateTlsSniKeyFilePaths: {key} may be read or written by others")
