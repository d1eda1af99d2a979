"""The broker's settings, whose names and values are in the path."""

from __future__ import annotations

from tests.unit.cli.admin.fake_server import FakeServer, Reply, admin


def test_settings_are_changed_and_reset(server: FakeServer) -> None:
    admin("brokers", "update-dynamic-config", "-c", "name", "-v", "a/b c")
    admin("brokers", "delete-dynamic-config", "--config=name")
    path = "/admin/v2/brokers/configuration/name"
    assert server.asked == [("POST", f"{path}/a%2Fb%20c", ""), ("DELETE", path, "")]


def test_settings_are_printed_as_maps_and_names_as_lists(server: FakeServer) -> None:
    server.answer({"a": "1", "b": ""})
    assert admin("brokers", "get-all-dynamic-config").output == "a    1\nb    \n"
    for verb in ("get-runtime-config", "get-runtime-configuration"):
        assert admin("brokers", verb).output == "a    1\nb    \n"
        assert server.asked[-1][1] == "/admin/v2/brokers/configuration/runtime"
    server.answer(["a", "b"])
    assert admin("brokers", "list-dynamic-config").output == "a\nb\n"


def test_bare_answers(server: FakeServer) -> None:
    server.replies = [Reply(200, b"4.0.8-headgate")]
    assert admin("brokers", "version").output == "4.0.8-headgate\n"
    server.replies = [Reply(200, b"ok")]
    assert admin("brokers", "healthcheck", "-tv", "V2").output == "ok\n"
    assert server.asked[-1][1] == "/admin/v2/brokers/health?topicVersion=V2"


def test_quotas_are_checked(server: FakeServer) -> None:
    assert admin("brokers", "backlog-quota-check").output == "ok\n"
    assert server.asked == [("GET", "/admin/v2/brokers/backlog-quota-check", "")]
    server.answer({"reason": "no"}, status=500)
    failed = admin("brokers", "backlog-quota-check")
    assert (failed.exit_code, failed.stdout) == (1, "")
