"""The verbs of encryption and of the largest message."""

from __future__ import annotations

from tests.unit.cli.admin.fake_server import FakeServer, admin

N = "/admin/v2/namespaces/t/n/encryptionRequired"
T = "/admin/v2/persistent/t/n/x/maxMessageSize"


def test_encryption_is_required_or_not(server: FakeServer) -> None:
    admin("namespaces", "set-encryption-required", "t/n", "-e")
    admin("namespaces", "set-encryption-required", "t/n", "--disable")
    server.answer(True)
    assert admin("namespaces", "get-encryption-required", "t/n").output == "true\n"
    assert server.asked == [("POST", N, "true"), ("POST", N, "false"), ("GET", N, "")]
    for switches in ((), ("-e", "-d")):
        refused = admin("namespaces", "set-encryption-required", "t/n", *switches)
        assert refused.exit_code == 1
        assert "Need to specify either enable or disable" in refused.output


def test_the_largest_message_of_a_topic(server: FakeServer) -> None:
    for group in ("topics", "topicPolicies"):
        admin(group, "set-max-message-size", "t/n/x", "-m", "1000")
        admin(group, "remove-max-message-size", "t/n/x")
        assert server.asked[-2:] == [("POST", T, "1000"), ("DELETE", T, "")]
    server.answer(1000)
    assert admin("topicPolicies", "get-max-message-size", "t/n/x", "-g").output == "1000\n"
    assert server.asked[-1] == ("GET", f"{T}?isGlobal=true", "")
