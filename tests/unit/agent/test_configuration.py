"""The file of clusters: what it may say, and the sentences about what it may not."""

from __future__ import annotations

import pytest

from headgate.agent.configuration import TLS_KEYS, parse_configuration, port_of
from headgate.base.errors import InputError
from headgate.policy.settings import SETTINGS

FULL = """
[agent]
listen = "[::1]:9000"
files = "/var/lib/headgate-agent"
filesMaxMiB = 5
filesMaxDays = 2
tokenPublicKey = "file:///etc/headgate/public.key"
roles = ["prometheus", "ops"]

[cluster.prod]
webServiceUrl = "https://pulsar:8443"
brokerServiceUrl = "pulsar+ssl://pulsar:6651"
authPlugin = "token"
authParams = "file:///run/token"
tlsEnableHostnameVerification = false
namespaces = ["acme/orders"]
requestsPerSecond = 10
telemetryTopic = "persistent://acme/telemetry/samples"

[cluster.test]
webServiceUrl = "http://test:8080"
"""


def test_each_cluster_has_its_own_connection() -> None:
    found = parse_configuration(FULL, "clusters.toml")
    assert (found.port.host, found.port.port, found.port.roles) == (
        "::1",
        9000,
        ("prometheus", "ops"),
    )
    assert (found.bounds.bytes_max, found.bounds.age_ms_max) == (5 << 20, 2 * 86_400_000)
    prod, test = found.clusters
    assert (prod.name, prod.client.admin_url) == ("prod", "https://pulsar:8443")
    assert (prod.client.auth_params, prod.client.verify_hostname) == ("file:///run/token", False)
    assert prod.telemetry_url == "pulsar+ssl://pulsar:6651"
    assert (prod.namespaces, prod.requests_per_s) == (("acme/orders",), 10)
    assert (test.telemetry_topic, test.requests_per_s) == ("", 50)


def test_defaults_are_this_machine_and_no_files() -> None:
    found = parse_configuration('[cluster.a]\nwebServiceUrl = "http://a:8080"', "c")
    assert (found.port.host, found.port.port, found.files) == ("127.0.0.1", 8090, "")
    assert not found.port.has_authentication


def test_tls_has_a_brokers_settings() -> None:
    text = """
[agent]
tlsCertificateFilePath = "a.cert.pem"
tlsKeyFilePath = "a.key.pem"
tlsRequireTrustedClientCertOnConnect = true
tlsCertRefreshCheckDurationSec = 60
tlsCiphers = ""
[cluster.a]
webServiceUrl = "http://a:8080"
"""
    assert parse_configuration(text, "c").port.tls == {
        "tlsCertificateFilePath": "a.cert.pem",
        "tlsKeyFilePath": "a.key.pem",
        "tlsRequireTrustedClientCertOnConnect": "true",
        "tlsCertRefreshCheckDurationSec": "60",
    }
    assert set(TLS_KEYS) <= set(SETTINGS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = ", "c is no TOML"),
        ("", r"c has no cluster: a table \[cluster.NAME\] is needed"),
        ("[clusters.a]", "there is no table 'clusters'.*cluster"),
        ("[cluster.a]", "webServiceUrl is needed"),
        ('[cluster.a]\nwebServiceURL = "x"', "no key 'webServiceURL'.*webServiceUrl"),
        ('[cluster."a/b"]\nwebServiceUrl = "x"', "cluster 'a/b': 1 to 100 letters"),
        ('[cluster.a]\nwebServiceUrl = "x"\nrequestsPerSecond = 51', "a number from 1 to 50"),
        ('[cluster.a]\nwebServiceUrl = "x"\nnamespaces = "a/b"', "a list of texts"),
        ('[cluster.a]\nwebServiceUrl = "x"\nnamespaces = ["a"]', "tenant/namespace is allowed"),
        ('[cluster.a]\nwebServiceUrl = "x"\ntelemetryTopic = "t"', "needs the binary protocol"),
        (
            '[cluster.a]\nwebServiceUrl = "x"\ntelemetryTopic = "t"\n'
            'telemetryServiceUrl = "pulsar://u:p@h:6650"',
            r"telemetryTopic: the URL of the cluster that has it is a URL with a user or password",
        ),
        ("[cluster.a]\nwebServiceUrl = 3", "a text in quotes"),
        (
            "[agent]\ntlsCertificateFilePath = 'c'\n[cluster.a]\nwebServiceUrl = 'x'",
            "TLS needs tlsKeyFilePath, which is not set",
        ),
        (
            "[agent]\ntlsProtocols = 'TLSv1.3'\n[cluster.a]\nwebServiceUrl = 'x'",
            "TLS needs tlsCertificateFilePath and tlsKeyFilePath",
        ),
        (
            "[agent]\ntlsKeyFile = 'k'\n[cluster.a]\nwebServiceUrl = 'x'",
            "no key 'tlsKeyFile'.*tlsKeyFilePath",
        ),
        ('[agent]\nlisten = "8090"\n[cluster.a]\nwebServiceUrl = "x"', "HOST:PORT is allowed"),
        ('[agent]\nroles = ["a"]\n[cluster.a]\nwebServiceUrl = "x"', "belong together"),
        ('[agent]\ntokenPublicKey = "k"\n[cluster.a]\nwebServiceUrl = "x"', "belong together"),
        ("agent = 3\n[cluster.a]\nwebServiceUrl = 'x'", "agent is no table"),
        ("[agent]\nfilesMaxMiB = true\n[cluster.a]\nwebServiceUrl = 'x'", "a number from 1 to"),
    ],
)
def test_what_is_not_allowed_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_configuration(text, "c")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InputError) as raised:
        parse_configuration("[cluster.a]\n[cluster.b]\n[agent]\nlisten = 'x'", "c")
    assert all(part in str(raised.value) for part in ("cluster.a", "cluster.b", "listen"))


@pytest.mark.parametrize("listen", ["", ":80", "host", "host:", "host:x", "host:65536", "h:-1"])
def test_a_port_that_is_none(listen: str) -> None:
    with pytest.raises(InputError, match="HOST:PORT is allowed"):
        port_of(listen, "--listen")
