"""The demo's calls of the admin API, against a real broker and against none."""

from __future__ import annotations

import pytest

from headgate.demo.admin import AdminCallError, AdminClient, HttpCall
from tests.service.process import BrokerProcess


def test_a_broker_that_refuses_is_quoted(broker: BrokerProcess) -> None:
    admin = AdminClient("standalone", broker.admin_url)
    gone = HttpCall("DELETE", "/admin/v2/persistent/public/default/none-such")
    with pytest.raises(AdminCallError, match=r"DELETE http://\S+/none-such: 404 .*not found"):
        admin.call(gone)
    assert "pulsar_version_info" in admin.metrics()
    admin.close()


def test_a_broker_that_is_gone_is_named() -> None:
    admin = AdminClient("standalone", "http://127.0.0.1:9")
    with pytest.raises(AdminCallError, match=r"GET http://127\.0\.0\.1:9/metrics/: "):
        admin.metrics()
    admin.close()
