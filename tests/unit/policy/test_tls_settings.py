"""The settings of TLS are off by default, with Pulsar's keys."""

from __future__ import annotations

from dataclasses import fields

from headgate.policy.authorization_settings import AuthorizationSettings
from headgate.policy.settings import SETTINGS, Settings
from headgate.policy.tls_settings import TlsSettings


def test_all_are_settings_and_none_is_on() -> None:
    settings = Settings()
    inherited = {field.name for field in fields(AuthorizationSettings)}
    own = [field for field in fields(TlsSettings) if field.name not in inherited]
    assert own
    for field in own:
        assert field.name in SETTINGS
        value = getattr(settings, field.name)
        assert value in (-1, "", False, 300)
        assert not SETTINGS[field.name].dynamic


def test_an_empty_port_is_none() -> None:
    for key in ("brokerServicePort", "webServicePort"):
        for name in (key, f"{key}Tls"):
            assert SETTINGS[name].empty == SETTINGS[name].minimum == -1
    assert SETTINGS["maxMessageSize"].empty is None
