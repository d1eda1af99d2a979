"""Names with passwords, as htpasswd writes them."""

from __future__ import annotations

import bcrypt
import pytest

from headgate.security.apr1 import apr1
from headgate.security.errors import CredentialsError, InvalidKeyError
from headgate.security.password_file import PasswordFile
from headgate.security.provider import Principal

QUICK = bcrypt.gensalt(4)


def made(password: bytes) -> str:
    return bcrypt.hashpw(password, QUICK).decode()


FILE = PasswordFile.parsed(
    f"# users\n\nada:{made(b'pass:word')}\nbob:{apr1(b'secret', 'abc')}\n"
    f"eve:{made(b'old').replace('$2b$', '$2y$')}\n",
    "basicAuthConf",
)


def test_right_passwords() -> None:
    assert len(FILE) == 3
    assert FILE.principal(b"ada:pass:word") == Principal("ada")
    assert FILE.principal(b"bob:secret") == Principal("bob")
    assert FILE.principal(b"eve:old") == Principal("eve")


@pytest.mark.parametrize(
    "credentials",
    [
        b"ada:pass", b"ada:", b"bob:Secret", b"nobody:secret", b"ada", b":pass:word", b"",
        b"\xff:x", b"ada:" + b"x" * 2_000, b"ada:" + b"x" * 73, b"ada:pass:word\0", b"bob:\xff",
    ],
)  # fmt: skip
def test_everything_else(credentials: bytes) -> None:
    with pytest.raises(CredentialsError) as caught:
        FILE.principal(credentials)
    assert "pass:word" not in str(caught.value)


def test_an_unknown_name_costs_what_a_known_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []

    def checkpw(password: bytes, hashed: bytes) -> bool:
        checked.append(hashed)
        return True

    monkeypatch.setattr(bcrypt, "checkpw", checkpw)
    with pytest.raises(CredentialsError):
        FILE.principal(b"nobody:anything")
    assert len(checked) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ada", "line 1 is no name:hash"),
        (f"ada:{made(b'x')}\n:{made(b'x')}", "line 2 is no name:hash"),
        ("ada:plain", "line 1 has neither bcrypt nor"),
        ("ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "line 1 has neither bcrypt nor"),
        ("ada:$apr1$x", "line 1 has neither bcrypt nor"),
        (f"ada:{made(b'x')}\nada:{made(b'y')}", "line 2 names 'ada' a second time"),
    ],
)
def test_what_is_no_such_file(text: str, why: str) -> None:
    with pytest.raises(InvalidKeyError, match=f"basicAuthConf: {why}"):
        PasswordFile.parsed(text, "basicAuthConf")


def test_an_empty_file_lets_nobody_in() -> None:
    with pytest.raises(CredentialsError):
        PasswordFile.parsed("", "basicAuthConf").principal(b"a:b")
