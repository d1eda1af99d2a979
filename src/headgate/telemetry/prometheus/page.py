"""The text of a metrics page: Prometheus's text format 0.0.4 in compressed blocks.

One TYPE line for each name, no HELP, no timestamps. Numbers follow Pulsar: counts are integers,
rates and seconds have three decimals. Label values are escaped, which Pulsar does not do.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.telemetry.prometheus.compressed import BLOCK_BYTES, Block, deflate
from headgate.telemetry.prometheus.series.definition import Series
from headgate.telemetry.prometheus.values import Number


def number(value: Number) -> str:
    """A sample's value: integers plain, others with three decimals."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


class Page:
    """A page in the making. For each name it holds the lines of this slice, text that does not fill
    a block yet, and compressed blocks."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._texts: dict[str, bytearray] = {}
        self._blocks: dict[str, list[Block]] = {}
        self._full: list[str] = []
        """Names with enough text for a block."""

    def lines_of(self, series: Series) -> list[str]:
        """The lines of a series in this slice, each a whole line without its end."""
        return self.lines_named(series.name)

    def lines_named(self, name: str) -> list[str]:
        """The lines of the series of a name."""
        return self._lines.setdefault(name, [])

    def end_slice(self) -> None:
        """Join the lines of the slice to the texts of their names."""
        for name, lines in self._lines.items():
            if lines:
                lines.append("")
                text = self._texts.setdefault(name, bytearray())
                text += "\n".join(lines).encode()
                lines.clear()
                if len(text) >= BLOCK_BYTES:
                    self._full.append(name)

    def compress_one(self) -> bool:
        """Compress one block of text; False if no text fills one. Takes 0.2 ms."""
        if not self._full:
            return False
        name = self._full[-1]
        text = self._texts[name]
        self._blocks.setdefault(name, []).append(deflate(text[:BLOCK_BYTES]))
        del text[:BLOCK_BYTES]
        if len(text) < BLOCK_BYTES:
            self._full.pop()
        return True

    def blocks(self, all_series: tuple[Series, ...]) -> Iterator[Block]:
        """The page, in order; names without samples are left out."""
        text = bytearray()
        for series in all_series:
            blocks, rest = self._blocks.get(series.name, []), self._texts.get(series.name)
            if rest is None:
                continue
            text += f"# TYPE {series.family} {series.type}\n".encode()
            if blocks:
                yield deflate(text)
                yield from blocks
                text.clear()
            text += rest
            if len(text) >= BLOCK_BYTES:
                yield deflate(text)
                text.clear()
        yield deflate(text)
