"""Keys and tokens from the command line, in the forms of ``pulsar tokens``."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headgate.cli.group import main
from headgate.security.revocation import revocations_of_file


def call(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["tokens", *words], input=given)


def test_from_a_secret_to_a_checked_token(tmp_path: Path) -> None:
    secret = str(tmp_path / "secret.key")
    assert call("create-secret-key", "--output", secret).exit_code == 0
    assert Path(secret).stat().st_mode & 0o777 == 0o600
    assert len(Path(secret).read_bytes()) == 32
    made = call("create", "-s", "app", "-sk", f"file://{secret}", "-e", "10h", "--id", "t1",
                "--audience", "here", "-hs", "kid=k1")  # fmt: skip
    assert made.exit_code == 0, made.output
    header, claims = map(json.loads, call("show", made.stdout.strip()).stdout.split("---"))
    assert header == {"alg": "HS256", "typ": "JWT", "kid": "k1"}
    assert (claims["sub"], claims["jti"], claims["aud"]) == ("app", "t1", "here")
    assert abs(claims["exp"] - time.time() - 36_000) < 60
    valid = call("validate", "--stdin", "-sk", secret, "--audience", "here", given=made.stdout)
    assert json.loads(valid.stdout) == claims
    elsewhere = call("validate", "-i", "-sk", secret, "--audience", "there", given=made.stdout)
    assert elsewhere.exit_code == 1
    assert "not valid: the claim aud of the token does not have 'there'" in elsewhere.stderr


def test_a_key_pair_and_a_token_in_a_file(tmp_path: Path) -> None:
    private, public, file = (str(tmp_path / name) for name in ("private", "public", "token"))
    made = call("create-key-pair", "--output-private-key", private, "--output-public-key", public,
                "-a", "ES256")  # fmt: skip
    assert made.exit_code == 0, made.output
    text = call("create", "--subject", "app", "--private-key", private, "-a", "ES256").stdout
    Path(file).write_text(text)
    assert call("validate", "-f", file, "-pk", public, "-a", "ES256").exit_code == 0
    other = call("validate", "-f", file, "-pk", public)
    assert other.exit_code == 2
    assert "curve secp256r1: not for RS256" in other.stderr


def test_a_secret_as_text() -> None:
    made = call("create-secret-key", "--base64", "-a", "HS512")
    text = call("create", "-s", "app", "-sk", made.stdout.strip()).stdout
    assert json.loads(call("show", text.strip()).stdout.split("---")[0])["alg"] == "HS512"
    assert call("validate", text.strip(), "-sk", made.stdout.strip()).exit_code == 0


def test_a_secret_on_the_command_line_has_a_warning(tmp_path: Path) -> None:
    """It repeats no part of it."""
    path = tmp_path / "secret.key"
    call("create-secret-key", "--output", str(path))
    text = call("create-secret-key", "--base64").stdout.strip()
    quiet = call("create", "-s", "app", "-sk", str(path))
    assert quiet.stderr == ""
    loud = call("create", "-s", "app", "-sk", text)
    warning = "can be seen by every user of this machine (ps): give file:///PATH"
    assert loud.stderr == f"Warning: a key in --secret-key {warning}\n"
    checked = call("validate", loud.stdout.strip(), "-sk", text)
    assert warning in checked.stderr
    assert "a token as an argument can be seen by every user" in checked.stderr
    assert text not in checked.stderr
    assert call("show", "-i", given=loud.stdout).stderr == ""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("create", "-s", "a"), "give one of --secret-key and --private-key"),
        (("create", "-s", "a", "-sk", "x", "-pk", "y"), "give one of"),
        (("create", "-s", " ", "-sk", "x"), "at least one visible character"),
        (("create", "-s", "a", "-sk", "AAAA"), "--secret-key has 3 bytes: HS256 needs 32"),
        (("create", "-s", "a", "-sk", "A" * 44, "-e", "soon"), "'soon' is no time such as 10h"),
        (("create", "-s", "a", "-sk", "A" * 44, "-hs", "alg=none"), "a name that is not free"),
        (("show",), "give the token, --token-file or --stdin"),
        (("show", "a.b.c", "-i"), "give the token, --token-file or --stdin"),
        (("show", "-f", "/no/such/file"), "--token-file /no/such/file cannot be read"),
        (("validate", "a.b.c", "-pk", "/no/such/key!"), "--public-key is the path of no file"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], why: str) -> None:
    result = call(*words)
    assert result.exit_code == 2
    assert why in " ".join(result.stderr.split())


def test_no_key_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("mine")
    result = call("create-secret-key", "-o", str(path))
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert path.read_text() == "mine"


def test_the_line_that_revokes_a_token(tmp_path: Path) -> None:
    secret = call("create-secret-key", "--base64").stdout.strip()
    words = ("create", "-s", "app", "-sk", secret, "--id", "t 1")
    text = call(*words, "-e", "10h").stdout
    line = call("revocation", "-i", given=text).stdout
    found = revocations_of_file(line, "f").token_ids
    assert abs(found["t 1"] - time.time() - 11 * 3_600) < 60
    assert call("revocation", call(*words).stdout.strip()).stdout == "token t 1\n"


@pytest.mark.parametrize(
    ("token_id", "why"),
    [(None, "has no id (claim jti): revoke its role"), ("x" * 2_000, "is no name"),
     ("until x", "is no name"), (" x", "is no name for a revocation")],
)  # fmt: skip
def test_a_token_that_cannot_be_revoked_by_its_id(token_id: str | None, why: str) -> None:
    secret = call("create-secret-key", "--base64").stdout.strip()
    more = () if token_id is None else ("--id", token_id)
    made = call("create", "-s", "app", "-sk", secret, *more).stdout.strip()
    refused = call("revocation", made)
    assert refused.exit_code != 0
    assert why in refused.stderr
