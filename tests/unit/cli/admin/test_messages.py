"""Single messages: an entry with its metadata, and ids by time."""

from __future__ import annotations

from tests.unit.cli.admin.fake_server import FakeServer, Reply, admin


def test_an_entry_is_shown_with_its_metadata(server: FakeServer) -> None:
    headers = {
        "Content-Type": "application/octet-stream",
        "X-Pulsar-publish-time": "2026-11-21T18:18:35.976Z",
        "x-pulsar-message-id": "8:5",
        "X-Pulsar-num-batch-message": "50",
    }
    server.replies = [Reply(200, b"hello", headers)]
    result = admin("topics", "get-message-by-id", "t/n/x", "-l", "8", "-e", "5")
    assert result.output.splitlines()[:3] == [
        "Message ID: 8:5",
        "Publish time: 2026-11-21T18:18:35.976Z",
        "num-batch-message: 50",
    ]
    assert "|00000000| 68 65 6c 6c 6f " in result.output
    assert server.asked[0][1] == "/admin/v2/persistent/t/n/x/ledger/8/entry/5"


def test_an_id_by_time(server: FakeServer) -> None:
    server.answer({"ledgerId": 8})
    words = ["get-message-id", "t/n/x", "-d", "1970-01-01T00:00:01Z"]
    assert admin("topics", *words).output == '{\n  "ledgerId" : 8\n}\n'
    assert server.asked[0][1] == "/admin/v2/persistent/t/n/x/messageid/1000"


def test_a_peek_ends_with_the_backlog(server: FakeServer) -> None:
    entry = Reply(200, b"x", {"X-Pulsar-Message-ID": "8:1"})
    server.replies = [entry, entry, Reply(404, b'{"reason":"Message not found"}')]
    result = admin("topics", "peek-messages", "x", "-s", "s", "-n", "5")
    assert (result.exit_code, result.output.count("Message ID: 8:1")) == (0, 2)
    assert result.output.count("-" * 73) == 1
    paths = [path for _, path, _ in server.asked]
    assert paths[0] == "/admin/v2/persistent/public/default/x/subscription/s/position/1"
    assert len(paths) == 3
    server.replies = [Reply(404, b'{"reason":"Subscription s not found"}')]
    assert admin("topics", "peek-messages", "x", "-s", "s").exit_code == 1


def test_an_entry_is_examined(server: FakeServer) -> None:
    server.replies = [Reply(200, b"x", {"X-Pulsar-Message-ID": "8:1"})]
    result = admin("topics", "examine-messages", "x", "-i", "earliest", "-m", "3")
    assert "Message ID: 8:1" in result.output
    assert server.asked[0][1].endswith(
        "/x/examinemessage?initialPosition=earliest&messagePosition=3"
    )
