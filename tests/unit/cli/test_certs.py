"""``headgate certs`` makes what a trial of TLS needs, and overwrites nothing."""

from __future__ import annotations

import ssl
from pathlib import Path

from click.testing import CliRunner, Result

from headgate.access.authentication import certificate_paths
from headgate.access.client_config import check_keys, config_of
from headgate.app.config_file import load_settings, read_config
from headgate.app.tls.current import CurrentTls
from headgate.cli.group import main


def call(*words: str) -> Result:
    return CliRunner().invoke(main, ["certs", *words])


def test_the_printed_settings_start_a_broker(tmp_path: Path) -> None:
    place = tmp_path / "certs"
    made = call("create", "--dir", str(place), "--host", "b.example", "--role", "admin",
                "--role", "app")  # fmt: skip
    assert made.exit_code == 0, made.output
    names = ("ca", "client-admin", "client-app", "server")
    pems = {f"{name}.{kind}.pem" for name in names for kind in ("cert", "key")}
    configs = {"client-admin.conf", "client-app.conf", "tls.conf"}
    assert {path.name for path in place.iterdir()} == pems | configs
    assert place.stat().st_mode & 0o777 == 0o700
    for path in place.glob("*.key.pem"):
        assert path.stat().st_mode & 0o777 == 0o600
    settings = load_settings(read_config(str(place / "tls.conf"))).settings
    assert CurrentTls.open(settings) is not None
    for line in (place / "tls.conf").read_text().splitlines():
        assert line in made.output
    context = ssl.create_default_context(cafile=str(place / "ca.cert.pem"))
    context.load_cert_chain(place / "client-app.cert.pem", place / "client-app.key.pem")


def test_the_configuration_of_a_client_says_where_the_broker_is_and_who_asks(
    tmp_path: Path,
) -> None:
    place = tmp_path / "certs"
    assert call("create", "--dir", str(place), "--host", "b.example", "--host", "c").exit_code == 0
    made = call("create-client", "--dir", str(place), "app", "--host", "fd00::1")
    assert made.exit_code == 0, made.output
    for role, host in (("admin", "b.example"), ("app", "[fd00::1]")):
        text = (place / f"client-{role}.conf").read_text()
        settings = dict(line.split("=", 1) for line in text.splitlines())
        check_keys(settings, "the file")
        config = config_of(settings, "the file")
        assert config.admin_url == f"https://{host}:8443"
        assert config.broker_url == f"pulsar+ssl://{host}:6651"
        assert config.trust_path == f"{place}/ca.cert.pem"
        found = certificate_paths(config)
        assert found == tuple(f"{place}/client-{role}.{kind}.pem" for kind in ("cert", "key"))
        assert all(Path(path).exists() for path in found)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    words = ("create", "--dir", str(tmp_path))
    assert call(*words).exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    again = call(*words)
    assert again.exit_code == 2
    assert "ca.cert.pem exists already: nothing is overwritten" in again.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    more = call("create-client", "--dir", str(tmp_path), "app", "admin")
    assert (more.exit_code, (tmp_path / "client-app.cert.pem").exists()) == (2, False)


def test_a_folder_into_which_others_may_write_gets_no_keys(tmp_path: Path) -> None:
    place = tmp_path / "certs"
    place.mkdir()
    place.chmod(0o777)
    made = call("create", "--dir", str(place))
    assert made.exit_code == 2
    assert "others may write there (mode 0777)" in made.output
    assert list(place.iterdir()) == []
    place.chmod(0o755)
    assert call("create", "--dir", str(place)).exit_code == 0


def test_further_clients_are_of_the_same_authority(tmp_path: Path) -> None:
    assert call("create", "--dir", str(tmp_path)).exit_code == 0
    made = call("create-client", "--dir", str(tmp_path), "app")
    assert made.exit_code == 0, made.output
    assert "client-app.cert.pem, client-app.key.pem and client-app.conf are in" in made.output
    (tmp_path / "ca.key.pem").chmod(0o644)
    refused = call("create-client", "--dir", str(tmp_path), "other")
    assert refused.exit_code == 2
    assert "ca.key.pem may be read or written by others" in refused.stderr


def test_bad_words(tmp_path: Path) -> None:
    for words, text in (
        (("--role", "../admin"), "role '../admin' is not allowed"),
        (("--host", "a b"), "host 'a b' is neither a host name nor an IP address"),
        (("--days", "0"), "0 is not in the range"),
    ):
        refused = call("create", "--dir", str(tmp_path / "new"), *words)
        assert refused.exit_code == 2
        assert text in refused.stderr
        assert not (tmp_path / "new").exists()
    assert call("create-client", "--dir", str(tmp_path), "app").exit_code == 2
