"""HTTP lookup."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

L = "/lookup/v2/topic"


def test_every_topic_is_here(api: Ask) -> None:
    answer = api("GET", f"{L}/persistent/public/default/t").json()
    assert answer["brokerUrl"] == "pulsar://127.0.0.1:6650"
    assert answer["brokerUrlTls"] == answer["brokerUrlSsl"] == ""
    assert api("GET", f"{L}/persistent/public/none/t").reason == "Namespace not found"
    assert api("GET", f"{L}/other/public/default/t").status == 404


def test_the_bundle(api: Ask) -> None:
    text = api("GET", f"{L}/persistent/public/default/t/bundle").body.decode()
    low, _, high = text.partition("_")
    assert int(low, 16) < int(high, 16)
    assert api("GET", f"{L}/persistent/public/none/t/bundle").status == 404


def test_with_tls_both_addresses_are_there(api: Ask, broker: FakeFacade) -> None:
    broker.info = replace(
        broker.info, broker_url_tls="pulsar+ssl://b:6651", web_url_tls="https://b:8443"
    )
    answer = api("GET", f"{L}/persistent/public/default/t").json()
    assert (answer["brokerUrl"], answer["httpUrl"]) == (broker.info.broker_url, broker.info.web_url)
    assert answer["brokerUrlTls"] == answer["brokerUrlSsl"] == "pulsar+ssl://b:6651"
    assert answer["httpUrlTls"] == "https://b:8443"
