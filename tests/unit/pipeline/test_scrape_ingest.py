"""What a run knows of earlier runs before it reads scrapes. Starts no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.pipeline import scrape_ingest
from headgate.pipeline.scrapes.folder import BrokerFolder
from headgate.pipeline.scrapes.rows import scrape_source
from headgate.pipeline.tables.columns import Table
from tests.unit.pipeline.scrapes.texts import write_scrapes

BROKERS = ("a", "b", "c")


def test_each_table_is_read_once_for_all_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read once for each broker, which takes the square of their number."""
    for name in BROKERS:
        write_scrapes(tmp_path / "scrapes" / name, range(3))
    asked: list[str] = []
    known: dict[str, set[str]] = {}

    def values(_root: str, table: Table, _files: object, *_names: str) -> Iterator[tuple[str, Any]]:
        asked.append(table.name)
        is_batch = table.name == "bronze_samples"
        for place, name in enumerate(BROKERS):
            yield scrape_source(name), place if is_batch else f"{place}.bad"

    def ingest(_spark: object, broker: BrokerFolder, _root: str, files: set[str]) -> None:
        known[broker.label] = files

    monkeypatch.setattr(scrape_ingest, "prepare_session", lambda _: None)
    monkeypatch.setattr(scrape_ingest, "_values", values)
    monkeypatch.setattr(scrape_ingest, "_ingest", ingest)
    said = scrape_ingest.ingest_scrapes(
        None,  # type: ignore[arg-type]
        str(tmp_path / "scrapes"),
        str(tmp_path / "tables"),
    )
    assert known == {name: {f"{place}.prom", f"{place}.bad"} for place, name in enumerate(BROKERS)}
    assert asked == ["bronze_samples", "bronze_quarantine", "bronze_quarantine"]
    assert [text.partition(":")[0] for text in said] == list(BROKERS)
