"""A refusal names what was sent and whose it is, and never a secret."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from headgate.access.authentication import authentication
from headgate.access.client_config import ClientConfig
from headgate.access.refusals import advice, scrubbed

NOW_S = 1_000_000.0


def jwt(**claims: Any) -> str:
    parts = [{"alg": "HS256"}, claims]
    encoded = [urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, "s3cret"])


def told(
    status: int, plugin: str = "", params: str = "", reason: str = "", **environment: str
) -> str:
    config = ClientConfig(auth_plugin=plugin, auth_params=params, auth_origin="authParams in c")
    sent = authentication(config, environment, print)
    text = advice(status, reason, config, sent, NOW_S)
    assert "s3cret" not in text
    return text


def test_without_credentials_the_ways_to_give_them_are_named() -> None:
    assert told(401) == (
        "The command sent no credentials. Name a client.conf with --config or PULSAR_CLIENT_CONF, "
        "a --profile, or --auth-plugin and --auth-params."
    )


@pytest.mark.parametrize(
    ("claims", "about"),
    [
        ({"sub": "app", "exp": NOW_S - 3_600}, " of 'app', which lapsed 3,600 s ago"),
        ({"sub": "app", "exp": NOW_S + 1}, " of 'app'"),
        ({"sub": ["a"], "exp": "soon"}, ""),
    ],
)
def test_a_token_says_whose_it_is(claims: dict[str, Any], about: str) -> None:
    text = told(401, "token", "env:T", T=jwt(**claims))
    assert text.startswith(
        f"The command sent the token in the variable T (authParams in c){about}."
    )
    assert "may have lapsed, or be of another cluster" in text
    assert "lacks the right" in told(403, "token", "env:T", T=jwt(**claims))


def test_what_is_no_such_token_has_no_role() -> None:
    begin = "The command sent the token in the variable T (authParams in c)."
    assert told(401, "token", "env:T", T="s3cret").startswith(begin)
    assert told(401, "token", "env:T").startswith(begin)
    assert "the user and password (authParams in c)." in told(401, "basic", "u:s3cret")


def test_secrets_are_taken_out_of_a_servers_text() -> None:
    config = ClientConfig(auth_plugin="token", auth_params="token:s3cret")
    assert scrubbed("no s3cret", authentication(config, {}, print)) == "no ***"
    missing = ClientConfig(auth_plugin="token", auth_params="env:T")
    assert scrubbed("no s3cret", authentication(missing, {}, print)) == "no s3cret"


@pytest.mark.parametrize(
    "reason",
    [
        "Unauthorized to validateTopicOperation for operation [GET_STATS] on topic [t]",
        "This operation requires super-user access",
    ],
)
def test_a_missing_right_is_no_fault_of_the_credentials_whatever_the_status(reason: str) -> None:
    """Pulsar refuses both with 401."""
    text = told(401, "token", "env:T", reason, T=jwt(sub="app"))
    assert text.endswith("The broker knows this role, which lacks the right for the request.")
    text = told(401, "token", "env:T", "Authentication required", T=jwt(sub="app"))
    assert "does not accept it" in text


def test_a_secret_in_the_name_of_a_host_or_within_another_is_taken_out() -> None:
    token = ClientConfig("http://b:1", auth_plugin="token", auth_params="token:S3cret.X")
    sent = authentication(token, {}, print)
    assert scrubbed("to http://s3cret.x:1, and S3cretyX", sent) == "to http://***:1, and S3cretyX"
    pair = ClientConfig("http://b:1", auth_plugin="basic", auth_params="anna:YW")
    text = authentication(pair, {}, print).headers()["Authorization"]
    assert scrubbed(text, authentication(pair, {}, print)) == "Basic ***"
