"""What the admin API does not have is refused in words, which the guide repeats."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.admin.not_supported import refusal_of
from tests.unit.admin.conftest import Ask

GUIDE = Path(__file__).parents[3] / "docs/guide/not-supported.md"
T = "/admin/v2/persistent/public/default/t"
N = "/admin/v2/namespaces/public/default"


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/admin/v3/functions/public/default", 405, "functions are not supported"),
        ("POST", "/admin/v3/functions/public/default/f", 405, "functions are not supported"),
        ("GET", "/admin/v2/worker/cluster", 405, "functions are not supported"),
        ("GET", "/admin/v2/worker-stats/metrics", 405, "functions are not supported"),
        ("GET", "/admin/v3/sources/public/default", 405, "sources are not supported"),
        ("GET", "/admin/v3/sinks/public/default", 405, "sinks are not supported"),
        ("GET", "/admin/v3/packages/function/public/default", 405, "Package management"),
        ("GET", "/admin/v3/transactions/coordinatorStats", 503, "transactions are not supported"),
        ("GET", "/admin/v2/scalable/public/default", 405, "Scalable topics"),
        ("GET", "/admin/v2/resourcegroups", 405, "Resource groups"),
        ("PUT", "/admin/v2/non-persistent/public/default/t", 404, "Non-persistent topics"),
        ("PUT", f"{T}/compaction", 405, "Compaction"),
        ("GET", f"{T}/compaction", 405, "Compaction"),
        ("GET", f"{N}/compactionThreshold", 405, "Compaction"),
        ("PUT", f"{T}/offload", 405, "Tiered storage"),
        ("GET", f"{T}/offloadPolicies", 405, "Tiered storage"),
        ("GET", f"{N}/offloadPolicies", 405, "Tiered storage"),
        ("GET", f"{N}/replicatorDispatchRate", 405, "Geo-replication"),
        ("GET", f"{T}/shadowTopics", 405, "Geo-replication"),
        ("GET", "/admin/v2/whatever", 404, "No such resource: /admin/v2/whatever"),
    ],
)
def test_a_refusal_is_that_of_the_guide(
    api: Ask, method: str, path: str, status: int, words: str
) -> None:
    answer = api(method, path)
    assert answer.status == status
    assert words in answer.reason
    if not words.startswith("No such"):
        assert f"| {status} | `{answer.reason}` |" in GUIDE.read_text()


@pytest.mark.parametrize("path", ["", "admin", "admin/v2", "admin/v3", "x/v3/functions", "metrics"])
def test_short_and_other_paths_are_unknown(path: str) -> None:
    assert refusal_of(f"/{path}", path.split("/")).status == 404
