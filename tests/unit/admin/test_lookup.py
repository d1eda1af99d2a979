"""HTTP lookup."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

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
