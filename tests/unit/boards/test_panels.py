"""Panels stand beside and below each other."""

from __future__ import annotations

from typing import Any

from boards.alert_rules import Alert
from boards.panels import COLUMNS, Panel, Query, Row, alert_row, board

PANELS = [Panel(f"p{n}", "meaning", [Query("up")], width=width) for n, width in
          enumerate((12, 12, 8, 8, 8, 24, 6))]  # fmt: skip


def made(*rows: Row, **fields: Any) -> dict[str, Any]:
    return board("name", "Title", "What it shows.", rows, **fields)


def every_panel(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for panel in found["panels"] for each in (panel, *panel.get("panels", ()))]


def test_panels_fill_rows_from_the_left_and_do_not_overlap() -> None:
    placed = every_panel(made(Row("one", PANELS), Row("two", PANELS)))
    taken: set[tuple[int, int]] = set()
    for each in placed:
        place = each["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
    assert [each["gridPos"]["x"] for each in placed[1:8]] == [0, 12, 0, 8, 16, 0, 0]
    numbers = [each["id"] for each in placed]
    assert sorted(set(numbers)) == numbers


def test_a_collapsed_row_holds_its_panels() -> None:
    found = made(Row("one", PANELS, is_collapsed=True), Row("two", PANELS))
    rows = [each for each in found["panels"] if each["type"] == "row"]
    assert [len(row["panels"]) for row in rows] == [len(PANELS), 0]
    assert len(found["panels"]) == 2 + len(PANELS)


def test_a_series_of_a_topic_opens_the_page() -> None:
    def links(panel: Panel, **fields: Any) -> list[Any]:
        drawn = every_panel(made(Row("row", [panel]), **fields))[1]
        found: list[Any] = drawn["fieldConfig"]["defaults"]["links"]
        return found

    panel = Panel("p", "meaning", [Query("up")])
    assert "/headgate/#/topic/" in links(panel)[0]["url"]
    assert links(panel, has_page=False) == []
    assert links(Panel("p", "meaning", [Query("up")], opens_topic=False)) == []


def test_a_board_without_a_page_does_not_ask_for_it() -> None:
    def names(**fields: Any) -> list[str]:
        return [each["name"] for each in made(**fields)["templating"]["list"]]

    assert "page" in names()
    assert "page" not in names(has_page=False)


def test_an_alert_is_a_panel_of_its_expression() -> None:
    (panel,) = alert_row([Alert("Stuck", "a > 1", "page.md")]).panels
    assert (panel.title, panel.queries[0].expression) == ("Stuck", "a > 1")
    assert "docs/guide/page.md" in panel.meaning


def test_a_threshold_is_a_line() -> None:
    panel = Panel("p", "meaning", [Query("up")], threshold=0.5)
    drawn = every_panel(made(Row("row", [panel])))[1]["fieldConfig"]["defaults"]
    assert drawn["thresholds"]["steps"][-1] == {"color": "red", "value": 0.5}
    assert drawn["custom"]["thresholdsStyle"] == {"mode": "dashed"}
