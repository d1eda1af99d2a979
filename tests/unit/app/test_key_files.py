"""Keys from files, URLs and texts; what is refused, and that no error has a part of a key."""

from __future__ import annotations

import base64
import os
import threading
from pathlib import Path

import pytest

from headgate.app.key_files import is_literal, read_file, read_key, write_new, write_secret
from headgate.security.errors import InvalidKeyError

KEY = bytes(range(32))
TEXT = base64.b64encode(KEY).decode()


def stored(path: Path, mode: int = 0o600, data: bytes = KEY) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_all_four_forms(tmp_path: Path) -> None:
    path = stored(tmp_path / "secret key")
    for source in (str(path), path.as_uri(), f"data:;base64,{TEXT}", TEXT, TEXT.rstrip("=")):
        assert read_key(source, "tokenSecretKey", is_secret=True) == KEY


def test_what_is_the_key_itself(tmp_path: Path) -> None:
    path = stored(tmp_path / "secret key")
    files = (str(path), path.as_uri(), "file:///none", "/etc/none.key", "")
    assert not any(is_literal(source) for source in files)
    assert all(is_literal(source) for source in (f"data:;base64,{TEXT}", TEXT, TEXT.rstrip("=")))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_secret_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = stored(tmp_path / "key", mode)
    with pytest.raises(InvalidKeyError, match=rf"may be read .* {mode:04o}\): chmod 600"):
        read_key(str(path), "tokenSecretKey", is_secret=True)
    assert read_key(str(path), "tokenPublicKey", is_secret=False) == KEY


@pytest.mark.parametrize("mode", [0o646, 0o666, 0o602])
def test_a_public_key_or_authority_that_everybody_may_write_is_refused(
    tmp_path: Path, mode: int
) -> None:
    path = stored(tmp_path / "key", mode)
    said = rf"x: \S+ may be written by everybody .* {mode:04o}\): chmod 644"
    for read in (read_key, read_file):
        with pytest.raises(InvalidKeyError, match=said):
            read(str(path), "x", is_secret=False)
    path.chmod(0o664)  # as a umask of 002 leaves it
    assert read_key(str(path), "x", is_secret=False) == KEY


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("file:///no/such/key", "cannot be read"),
        ("file://elsewhere/key", "names no file of this machine"),
        ("data:;base64,", "is no data:"),
        ("data:text/plain,abc", "is no data:"),
        ("data:;base64", "is no data:"),
        ("/no/such/key!", "is the path of no file that exists"),
        ("no-such-key!", "neither a file that exists nor a key"),
        ("", "neither a file that exists nor a key"),
    ],
)
def test_what_is_no_source(source: str, why: str) -> None:
    with pytest.raises(InvalidKeyError, match=why) as caught:
        read_key(source, "tokenSecretKey", is_secret=True)
    assert "tokenSecretKey" in str(caught.value)


def test_an_error_repeats_no_secret() -> None:
    secret = "s3cr3t-which-is-no-base64!"
    for source in (secret, f"data:;base64,{secret}"):
        with pytest.raises(InvalidKeyError) as caught:
            read_key(source, "tokenSecretKey", is_secret=True)
        assert "s3cr3t" not in str(caught.value)


def test_a_folder_an_empty_and_a_huge_file(tmp_path: Path) -> None:
    stored(tmp_path / "empty", data=b"")
    stored(tmp_path / "huge", data=bytes((1 << 20) + 1))
    for name in ("empty", "huge", "."):
        with pytest.raises(InvalidKeyError):
            read_key(str(tmp_path / name), "tokenSecretKey", is_secret=True)


def test_nobody_waits_for_the_writer_of_a_pipe(tmp_path: Path) -> None:
    """Whoever looks for changed keys would wait for ever, and look no more."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    told: list[str] = []

    def look() -> None:
        with pytest.raises(InvalidKeyError, match="pipe is no file") as caught:
            read_file(str(tmp_path / "pipe"), "tlsKeyFilePath", is_secret=True)
        told.append(str(caught.value))

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    looker.join(10)
    assert told


def test_a_new_secret_is_for_its_owner_and_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new"
    write_secret(str(path), KEY)
    assert path.read_bytes() == KEY
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidKeyError, match="exists already"):
        write_secret(str(path), b"other")
    assert path.read_bytes() == KEY
    with pytest.raises(InvalidKeyError, match="cannot be written"):
        write_secret(str(tmp_path / "none" / "new"), KEY)


def test_files_that_settings_name(tmp_path: Path) -> None:
    path = tmp_path / "cert.pem"
    write_new(str(path), b"public")
    assert path.stat().st_mode & 0o777 & ~0o022 == 0o644 & ~0o022
    assert read_file(str(path), "x") == b"public"
    path.chmod(0o644)
    with pytest.raises(InvalidKeyError, match=r"x: \S+ may be read or written by others"):
        read_file(str(path), "x", is_secret=True)
    with pytest.raises(InvalidKeyError, match="exists already"):
        write_new(str(path), b"other")
    with pytest.raises(InvalidKeyError, match="x: /nowhere cannot be read: No such file"):
        read_file("/nowhere", "x")


def test_the_path_of_a_missing_file_is_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is base64 and long enough for a secret, and everybody may know it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secrets").mkdir()
    for path in (
        "/run/secrets/headgate/token-signing-secret-key",
        "/" + "a" * 43,
        "secrets/headgate/token-signing-secret-key_of_it",
    ):
        with pytest.raises(InvalidKeyError, match="is the path of no file that exists") as caught:
            read_key(path, "tokenSecretKey", is_secret=True)
        assert path not in str(caught.value)  # it may be a key
        assert not is_literal(path)
    (tmp_path / "secrets").rmdir()
    assert is_literal("secrets/" + "A" * 36)


def test_a_key_in_base64_may_begin_with_a_slash() -> None:
    for count in (32, 48):
        key = b"\xff" * count
        text = base64.b64encode(key).decode()
        assert text.startswith("/")
        assert read_key(f"data:;base64,{text}", "key", is_secret=True) == key
    # Without that, an end that no path has tells it.
    padded = base64.b64encode(b"\xff" * 32).decode()
    assert read_key(padded, "key", is_secret=True) == b"\xff" * 32
    assert is_literal(padded)
