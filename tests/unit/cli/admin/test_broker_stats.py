"""Requests about the figures of the whole broker."""

from __future__ import annotations

from tests.unit.cli.admin.fake_server import FakeServer, admin

FIGURES = {"t/n": {"0x0_0x1": {"persistent": {}}}}


def test_figures_are_one_line_or_indented(server: FakeServer) -> None:
    server.answer(FIGURES)
    for verb in ("topics", "destinations"):
        result = admin("broker-stats", verb)
        assert result.output == '{"t/n":{"0x0_0x1":{"persistent":{}}}}\n'
    assert admin("broker-stats", "topics", "-i").output.startswith('{\n  "t/n" : {\n')
    assert {path for _, path, _ in server.asked} == {"/admin/v2/broker-stats/topics"}


def test_sums_and_the_load_report(server: FakeServer) -> None:
    server.answer([])
    assert admin("broker-stats", "monitoring-metrics").output == "[]\n"
    server.answer({"numTopics": 3})
    assert admin("broker-stats", "load-report").output == '{\n  "numTopics" : 3\n}\n'
    assert [path.rpartition("/")[2] for _, path, _ in server.asked] == ["metrics", "load-report"]
