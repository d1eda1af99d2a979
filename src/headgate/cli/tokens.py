"""The commands ``headgate tokens``, with the options of ``pulsar tokens``."""

from __future__ import annotations

import base64
import json
import re
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from headgate.app.key_files import is_literal, read_key, write_secret
from headgate.base.errors import InputError
from headgate.base.instants import iso_time
from headgate.base.units import MS_PER_S, S_PER_HOUR
from headgate.cli.group import SuggestingGroup
from headgate.security import token_keys
from headgate.security.claims import instant, token_id_of
from headgate.security.errors import CredentialsError, InvalidKeyError
from headgate.security.revocation import revocations_of_file
from headgate.security.token_keys import (
    PAIR_ALGORITHMS,
    SECRET_ALGORITHMS,
    SECRET_BYTES_MIN,
    SigningKey,
    TokenKey,
    new_key_pair,
)
from headgate.security.tokens import (
    TOKEN_BYTES_MAX,
    TokenRules,
    TokenVerifier,
    new_token,
    shown,
)

_TIMES: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_TIME: Final = re.compile(r"([1-9][0-9]{0,9})([smhdwy]?)")
_FIXED_HEADERS: Final = ("alg", "typ", "crit", "b64")
_KEY_TEXT: Final = "file:///path, a path, data:;base64,... or base64"
_SEEN: Final = " can be seen by every user of this machine (ps)"

Command = TypeVar("Command", bound=Callable[..., Any])


def _seconds(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """``10h`` and the like; a number alone means seconds."""
    if value is None:
        return None
    match = _TIME.fullmatch(value)
    if match is None:
        raise click.BadParameter(f"{value!r} is no time such as 10h, 30d or 1y (units: smhdwy)")
    return int(match[1]) * _TIMES[match[2] or "s"]


def _headers(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name or name in _FIXED_HEADERS:
            raise click.BadParameter(
                f"{value!r} is no name=value, or a name that is not free: "
                f"{', '.join(_FIXED_HEADERS)}"
            )
        found[name] = text
    return found


def _token_options(command: Command) -> Command:
    """Where a token comes from."""
    for add in (
        click.argument("token", required=False),
        click.option("--stdin", "-i", "from_stdin", is_flag=True, help="Read it from stdin."),
        click.option("--token-file", "-f", metavar="FILE", help="Read it from a file."),
    ):
        command = add(command)
    return command


def _algorithm_option(names: tuple[str, ...], text: str) -> Callable[[Command], Command]:
    return click.option(
        "--signature-algorithm", "-a", "algorithm", type=click.Choice(names), help=text
    )


@click.group("tokens", cls=SuggestingGroup)
def tokens_group() -> None:
    """Make keys and tokens for clients, and check tokens.

    The formats are Pulsar's: a token that these commands make is valid for each Pulsar cluster with
    the same key, and they read the tokens of pulsar tokens.
    """


@tokens_group.command("create-secret-key")
@click.option("--output", "-o", metavar="FILE", help="A new file, which only you may read.")
@click.option("--base64", "-b", "as_base64", is_flag=True, help="As base64 in place of bytes.")
@_algorithm_option(
    SECRET_ALGORITHMS,
    "The algorithm for which the secret is long enough; HS256 if it is left out.",
)
def create_secret_key_command(
    output: str | None, algorithm: str | None, *, as_base64: bool
) -> None:
    """Make a secret, with which tokens are signed and checked."""
    secret = secrets.token_bytes(SECRET_BYTES_MIN[algorithm or "HS256"])
    data = base64.b64encode(secret) if as_base64 else secret
    if output is not None:
        write_secret(output, data)
    elif not as_base64 and sys.stdout.isatty():
        raise click.UsageError("a secret of bytes is no text for a terminal: add --base64 or -o")
    else:
        click.echo(data, nl=as_base64)


@tokens_group.command("create-key-pair")
@click.option("--output-private-key", metavar="FILE", required=True, help="A new file, for you.")
@click.option("--output-public-key", metavar="FILE", required=True, help="For the brokers.")
@_algorithm_option(
    PAIR_ALGORITHMS, "The algorithm that both keys are for; RS256 if it is left out."
)
def create_key_pair_command(
    output_private_key: str, output_public_key: str, algorithm: str | None
) -> None:
    """Make a private key, with which tokens are signed, and its public key, which checks them."""
    private, public = new_key_pair(algorithm or "RS256")
    write_secret(output_private_key, private)
    write_secret(output_public_key, public)


@tokens_group.command("create")
@click.option("--subject", "-s", required=True, help="The role.")
@click.option(
    "--expiry-time", "-e", "expires_s", metavar="TIME", callback=_seconds,
    help="When it expires, from now: 10h, 30d, 1y. Without it the token never does.",
)  # fmt: skip
@click.option("--secret-key", "-sk", metavar="KEY", help=f"A secret: {_KEY_TEXT}.")
@click.option("--private-key", "-pk", metavar="KEY", help=f"A private key: {_KEY_TEXT}.")
@_algorithm_option(
    SECRET_ALGORITHMS + PAIR_ALGORITHMS,
    "If it is left out: RS256 with a private key, the strongest that its length allows with a"
    " secret.",
)
@click.option("--audience", metavar="NAME", help="The cluster that the token is for (claim aud).")
@click.option("--id", "token_id", metavar="ID", help="A name of the token (claim jti).")
@click.option(
    "--headers", "-hs", "headers", metavar="NAME=VALUE", multiple=True, callback=_headers,
    help="A further header; may be repeated.",
)  # fmt: skip
def create_command(
    subject: str,
    expires_s: int | None,
    secret_key: str | None,
    private_key: str | None,
    algorithm: str | None,
    audience: str | None,
    token_id: str | None,
    headers: dict[str, str],
) -> None:
    """Make a token for a role and print it."""
    if not subject.strip():
        raise click.BadParameter("a role has at least one visible character", param_hint="subject")
    key = _signing_key(secret_key, private_key, algorithm)
    claims: dict[str, Any] = {"sub": subject}
    if expires_s is not None:
        claims["exp"] = int(time.time()) + expires_s
    claims |= {
        name: value for name, value in (("aud", audience), ("jti", token_id)) if value is not None
    }
    click.echo(new_token(key, claims, headers))


@tokens_group.command("show")
@_token_options
def show_command(token: str | None, token_file: str | None, *, from_stdin: bool) -> None:
    """Print what a token says, without a check of its signature."""
    header, claims = shown(_token(token, token_file, from_stdin=from_stdin))
    click.echo(json.dumps(header))
    click.echo("---")
    click.echo(json.dumps(claims))


@tokens_group.command("validate")
@_token_options
@click.option("--secret-key", "-sk", metavar="KEY", help=f"The secret: {_KEY_TEXT}.")
@click.option("--public-key", "-pk", metavar="KEY", help=f"The public key: {_KEY_TEXT}.")
@_algorithm_option(
    SECRET_ALGORITHMS + PAIR_ALGORITHMS,
    "If it is left out: RS256 with a public key, each that its length allows with a secret.",
)
@click.option("--audience", metavar="NAME", help="Ask for this audience in the claim aud.")
def validate_command(
    token: str | None,
    token_file: str | None,
    secret_key: str | None,
    public_key: str | None,
    algorithm: str | None,
    audience: str | None,
    *,
    from_stdin: bool,
) -> None:
    """Check a token as a broker does, and print what it says; status 1 if it is not valid."""
    key = _checking_key(secret_key, public_key, algorithm)
    rules = TokenRules(audience_claim="aud", audience=audience) if audience else TokenRules()
    text = _token(token, token_file, from_stdin=from_stdin)
    try:
        TokenVerifier([key], rules).principal(text, time.time())
    except CredentialsError as error:
        raise click.ClickException(f"not valid: {error}") from error
    click.echo(json.dumps(shown(text)[1]))


@tokens_group.command("revocation")
@_token_options
def revocation_command(token: str | None, token_file: str | None, *, from_stdin: bool) -> None:
    """Print the line of headgateRevocationFile that revokes a token.

    It begins with the word token; what follows is an entry of headgateRevokedTokenIds. If the token
    expires, the entry lapses an hour later, because brokers may accept a token for a while longer.
    The signature is not checked.
    """
    claims = shown(_token(token, token_file, from_stdin=from_stdin))[1]
    token_id = token_id_of(claims)
    if not token_id:
        raise click.ClickException("the token has no id (claim jti): revoke its role instead")
    expires_s = instant(claims, "exp")
    line = f"token {token_id}"
    if expires_s is not None:
        line += f" until {iso_time(round(expires_s + S_PER_HOUR) * MS_PER_S)}"
    if list(revocations_of_file(line, "the token").token_ids) != [token_id]:
        raise click.ClickException("the id of the token is no name for a revocation")
    click.echo(line)


def _signing_key(secret: str | None, private: str | None, algorithm: str | None) -> SigningKey:
    source, option = _one_of(secret, "--secret-key", private, "--private-key")
    _warn_of_literal(source, option)
    data = read_key(source, option, is_secret=True)
    if secret is not None:
        return token_keys.secret_key(data, option, algorithm or "")
    return token_keys.private_key(data, option, algorithm or "RS256")


def _checking_key(secret: str | None, public: str | None, algorithm: str | None) -> TokenKey:
    source, option = _one_of(secret, "--secret-key", public, "--public-key")
    if secret is not None:
        _warn_of_literal(source, option)
    data = read_key(source, option, is_secret=secret is not None)
    if secret is not None:
        return token_keys.secret_key(data, option, algorithm or "")
    return token_keys.public_key(data, option, algorithm or "RS256")


def _warn_of_literal(source: str, option: str) -> None:
    if is_literal(source):
        _warn(f"a key in {option}{_SEEN}: give file:///PATH")


def _warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)


def _one_of(
    secret: str | None, secret_option: str, other: str | None, option: str
) -> tuple[str, str]:
    if (secret is None) == (other is None):
        raise InvalidKeyError(f"give one of {secret_option} and {option}")
    return (secret, secret_option) if secret is not None else (other or "", option)


def _token(token: str | None, path: str | None, *, from_stdin: bool) -> str:
    """The token from one of its three places, without white space around it."""
    if (token is not None) + (path is not None) + from_stdin != 1:
        raise InputError("give the token, --token-file or --stdin: one of the three")
    if token is not None:
        _warn(f"a token as an argument{_SEEN}: give --token-file or --stdin")
        return token
    if path is None:
        return sys.stdin.read(TOKEN_BYTES_MAX + 1).strip()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(TOKEN_BYTES_MAX + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file {path} cannot be read: {error}") from error
