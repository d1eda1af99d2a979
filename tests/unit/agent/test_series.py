"""The catalogue of the agent's series."""

from __future__ import annotations

from headgate.agent.series import AGENT_SERIES


def test_names_are_unique_and_counters_end_as_counters_do() -> None:
    names = [each.name for each in AGENT_SERIES]
    assert len(set(names)) == len(names)
    for each in AGENT_SERIES:
        assert each.labels[:1] == (() if "_tls_" in each.name else ("cluster",))
        assert each.name.endswith("_total") == (each.type == "counter")
