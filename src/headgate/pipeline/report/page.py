"""The HTML page of the report: one file that loads nothing else.

Clients choose the names of topics and subscriptions. The template escapes them in text. In the
charts' JSON, which is inside a ``<script>``, :func:`charts_json` escapes each character that could
end the element. In the charts' texts, ``figures.label`` escapes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import jinja2
from plotly.offline import get_plotlyjs

from headgate.pipeline.report.sections import Section

_TEMPLATE: Final = "page.html.jinja"
_AMOUNT: Final = re.compile(r"(\d) (%|s\b|min\b|h\b|msg/s|B/s|[KMGT]?i?B\b)")
_UNSAFE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028",
                  "\u2029": "\\u2029"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Head:
    """The facts at the head of the page."""

    range: str
    clusters: tuple[str, ...]
    brokers: int
    completeness: float | None
    evidence: tuple[str, ...]
    subscriptions: int
    written: str
    """When the page was written, in words."""


def page_html(
    head: Head, summary: Sequence[str], sections: Sequence[Section], charts: Mapping[str, Any]
) -> str:
    """The page as HTML."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["whole"] = with_whole_amounts
    source = (files(__package__) / _TEMPLATE).read_text(encoding="utf-8")
    rendered: str = environment.from_string(source).render(
        head=head,
        summary=summary,
        sections=sections,
        charts=jinja2.filters.Markup(charts_json(charts)),
        plotly=jinja2.filters.Markup(get_plotlyjs()),
    )
    return rendered


def with_whole_amounts(text: str) -> str:
    """``text`` with no-break spaces between numbers and units."""
    return _AMOUNT.sub("\\1\N{NO-BREAK SPACE}\\2", text)


def charts_json(charts: Mapping[str, Any]) -> str:
    """Figures by id, as JSON that is safe inside ``<script>``."""
    text = json.dumps({name: figure.to_plotly_json() for name, figure in charts.items()})
    for character, escape in _UNSAFE.items():
        text = text.replace(character, escape)
    return text
