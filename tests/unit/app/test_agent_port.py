"""The agent's port has TLS by a broker's settings; ``tests/service/test_agent_daemon.py`` opens
it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.agent.configuration import TLS_KEYS, PortSettings
from headgate.app.agent_port import AgentPort
from headgate.base.errors import InputError
from headgate.testing import ManualClock
from tests.trial_certificates import Trial


def tls_of(trial: Trial) -> dict[str, str]:
    return {key: text for key, text in trial.settings.items() if key in TLS_KEYS}


def test_without_certificates_it_speaks_http() -> None:
    port = AgentPort.open(PortSettings(), ManualClock())
    assert (port.scheme, port.certificate()) == ("http", None)


def test_with_certificates_it_speaks_https(tmp_path: Path) -> None:
    port = AgentPort.open(PortSettings(tls=tls_of(Trial(tmp_path))), ManualClock())
    assert port.scheme == "https"


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("tlsKeyFilePath", "/not/there", "tlsKeyFilePath=/not/there.*cannot be read"),
        ("tlsProtocols", "SSLv3", "tlsProtocols: 'SSLv3' is not allowed"),
        ("tlsCertRefreshCheckDurationSec", "x", "tlsCertRefreshCheckDurationSec='x'"),
    ],
)
def test_what_cannot_be_used_stops_the_start(
    tmp_path: Path, key: str, text: str, sentence: str
) -> None:
    tls = tls_of(Trial(tmp_path)) | {key: text}
    with pytest.raises(InputError, match=sentence.replace("=/", "[=: ]+/")):
        AgentPort.open(PortSettings(tls=tls), ManualClock())
