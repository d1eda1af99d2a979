"""The keys of client.conf become one value."""

from __future__ import annotations

import pytest

from headgate.access.client_config import ADMIN_URL, ClientConfig, check_keys, config_of
from headgate.base.errors import InputError


def test_all_keys() -> None:
    settings = {
        "webServiceUrl": "https://b:8443",
        "brokerServiceUrl": "pulsar+ssl://b:6651",
        "authPlugin": "token",
        "authParams": "file:///t",
        "tlsTrustCertsFilePath": "/ca.pem",
        "tlsCertificateFilePath": "/c.pem",
        "tlsKeyFilePath": "/k.pem",
        "tlsAllowInsecureConnection": "TRUE",
        "tlsEnableHostnameVerification": "false",
        "useKeyStoreTls": "false",
        "memoryLimit": "1M",
    }
    assert config_of(settings, "c.conf") == ClientConfig(
        admin_url="https://b:8443",
        broker_url="pulsar+ssl://b:6651",
        auth_plugin="token",
        auth_params="file:///t",
        trust_path="/ca.pem",
        certificate_path="/c.pem",
        key_path="/k.pem",
        allow_insecure=True,
        verify_hostname=False,
        url_origin="webServiceUrl in c.conf",
        auth_origin="authParams in c.conf",
    )


def test_an_empty_value_is_not_set_and_hosts_are_verified() -> None:
    empty = dict.fromkeys(("webServiceUrl", "authPlugin", "tlsEnableHostnameVerification"), "")
    assert config_of(empty, "c.conf") == config_of({}, "") == ClientConfig()
    assert (ClientConfig().admin_url, ClientConfig().verify_hostname) == (ADMIN_URL, True)


def test_all_faults_are_named() -> None:
    settings = {
        "tlsAllowInsecureConnection": "yes",
        "tlsEnableHostnameVerification": "1",
        "useKeyStoreTls": "true",
        "tlsKeyFilePath": "/k",
    }
    with pytest.raises(InputError) as caught:
        config_of(settings, "c.conf")
    first, second, third, fourth = str(caught.value).splitlines()
    assert first == "c.conf: tlsAllowInsecureConnection='yes' is not allowed: true or false is"
    assert second.startswith("c.conf: tlsEnableHostnameVerification='1' is not allowed")
    assert "key stores of Java cannot be read" in third
    assert fourth.startswith("c.conf: tlsCertificateFilePath and tlsKeyFilePath belong together")


def test_keys_of_other_tools_are_refused_where_there_are_none() -> None:
    check_keys({"authPlugin": "token"}, "profile p")
    with pytest.raises(InputError, match=r"^profile p: there is no key 'authparam'; did you mean"):
        check_keys({"authparam": "x"}, "profile p")


def test_no_text_has_the_credentials() -> None:
    assert "s3cret" not in repr(ClientConfig(auth_params="token:s3cret"))
