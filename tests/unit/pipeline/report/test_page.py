"""One page that loads nothing, with escaped names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from headgate.pipeline.report import page as module
from headgate.pipeline.report import sections
from headgate.pipeline.report.backtest_section import backtest_section
from headgate.pipeline.report.page import Head, charts_json, page_html, with_whole_amounts
from headgate.pipeline.report.sections import Charts
from tests.unit.pipeline.report import facts
from tests.unit.pipeline.report.facts import EVIL, GRID

PLOTLY = "/* the library */"


class Tags(HTMLParser):
    """What a browser would see as elements."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "get_plotlyjs", lambda: PLOTLY)
    charts = Charts()
    found = [
        sections.backlog_section(facts.backlogs(facts.backlog()), GRID, charts),
        sections.quota_section([facts.quota_topic(facts.near_breach())], GRID, charts),
        sections.producer_section([facts.parked_topic()], GRID, charts),
        sections.limiter_section([facts.limiter()], GRID, charts),
        sections.eviction_section([facts.eviction()], GRID, charts),
        backtest_section(facts.run(), charts),
        sections.quality_section(facts.quality(), GRID, charts),
    ]
    head = Head("today", ("c<1>",), 1, 0.75, ("measured",), 12_345, "on Friday")
    return page_html(head, [f"{EVIL} grew."], found, charts.by_id)


def test_a_name_that_is_missing_is_an_empty_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "get_plotlyjs", lambda: PLOTLY)
    charts = Charts()
    both = [facts.eviction(), replace(facts.eviction(), quota=None)]
    found = [sections.eviction_section(both, GRID, charts)]
    head = Head("today", ("c",), 1, 0.75, ("measured",), 1, "on Friday")
    assert '<td data-of="quota"></td>' in page_html(head, [], found, charts.by_id)


def test_a_number_stays_with_its_unit() -> None:
    text = with_whole_amounts("99 % of 5 min at 1.5 MiB and 50 msg/s; 3 subscriptions, 12 sheep")
    assert text.replace("\N{NO-BREAK SPACE}", "_") == (
        "99_% of 5_min at 1.5_MiB and 50_msg/s; 3 subscriptions, 12 sheep"
    )


def test_names_are_escaped(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    names = [tag for tag, _ in tags.seen]
    assert "img" not in names
    assert "b" not in names
    assert names.count("script") == 3
    assert not [attrs for _, attrs in tags.seen if any(name.startswith("on") for name in attrs)]
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page


def test_columns_without_a_cell_are_not_on_the_page(page: str) -> None:
    assert "<th>state</th>" in page
    assert 'data-of="state">approached</td>' in page
    assert "<th>held producers</th>" not in page
    assert "<td></td>" not in page


def test_the_page_has_the_library_once_and_fetches_nothing(page: str) -> None:
    assert page.count(PLOTLY) == 1
    tags = Tags()
    tags.feed(page)
    assert not [attrs for _, attrs in tags.seen if "src" in attrs]
    assert all(attrs["href"] and attrs["href"][0] == "#" for tag, attrs in tags.seen if tag == "a")
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\(", page)


def test_every_chart_has_an_element_and_a_text(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    places = [attrs for _, attrs in tags.seen if attrs.get("class") == "chart"]
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    assert found is not None
    assert [place["id"] for place in places] == list(json.loads(found[1]))
    assert all(place["aria-label"] for place in places)


def test_the_head_has_range_and_brokers(page: str) -> None:
    for text in ("today", "c&lt;1&gt;", "12,345", "75.0 %", "Written by Headgate on Friday"):
        assert text in page


def test_json_in_a_script_cannot_end_it() -> None:
    class Figure:
        def to_plotly_json(self) -> dict[str, str]:
            return {"name": "</script><!--\u2028&"}

    text = charts_json({"a": Figure()})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": {"name": "</script><!--\u2028&"}}


def test_the_template_is_in_the_package() -> None:
    head = Head("r", (), 0, None, ("measured",), 0, "now")
    page = page_html(head, [], [], {})
    assert "unnamed" in page
    assert "unknown" in page
    assert len(page) > 1_000_000  # with plotly.js itself
