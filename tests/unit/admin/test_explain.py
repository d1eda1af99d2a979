"""Explain over HTTP."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

E = "/admin/v2/headgate/explain"


def test_the_worst(api: Ask) -> None:
    assert api("GET", E).json() == []
    assert api("GET", f"{E}?count=3").status == 200
    for count in ("0", "x", "1001", "-1", ""):
        answer = api("GET", f"{E}?count={count}")
        assert (answer.status, "1 to 1000 is allowed" in answer.reason) == (400, True)


def test_one_topic(api: Ask) -> None:
    path = f"{E}/persistent/public/default/t"
    assert api("GET", path).status == 404
    api("PUT", "/admin/v2/persistent/public/default/t")
    assert api("GET", path).json() == {
        "topic": "persistent://public/default/t", "perPartition": False,
        "subscriptions": [{"s": 1}],
    }  # fmt: skip
    assert api("GET", f"{path}?perPartition=true").json()["perPartition"]
    assert api("GET", f"{E}/persistent/public/default").status == 404
