"""The files of the page: small, complete, and those of the publishers unchanged."""

from __future__ import annotations

import gzip
import hashlib
import re
from importlib import resources

from headgate.page.files import INDEX, page_files

SIZE_BYTES_MAX = 60 * 1024
"""Of all files that a browser loads for the page, compressed; a file that nothing names is not."""
IMPORTED = re.compile(r"""(?:from|import)\s+["'](\.[^"']+)["']""")
LINKED = re.compile(r"""(?:src|href)="([^"#]+)\"""")
FOREIGN = re.compile(r"(?:src|href|from|import|fetch\()\s*=?\s*[\"'(]\s*(?:https?:)?//")
"""An address of another host."""
STATIC = resources.files("headgate.page") / "static"


def targets(name: str, text: str) -> set[str]:
    """The files that one file has the browser load, by their paths."""
    found = [*IMPORTED.findall(text), *(LINKED.findall(text) if name == INDEX else ())]
    paths = set()
    for target in found:
        path: list[str] = []
        for part in [*name.rpartition("/")[0].split("/"), *target.split("/")]:
            if part == "..":
                path.pop()
            elif part not in (".", ""):
                path.append(part)
        paths.add("/".join(path))
    return paths


def test_what_a_browser_loads_is_small() -> None:
    files = page_files()
    loaded = {INDEX}
    left = [INDEX]
    while left:
        name = left.pop()
        found = {target for target in targets(name, files[name].body.decode()) if target in files}
        left += found - loaded
        loaded |= found
    assert {"style.css", "app/main.js", "app/actions/dialog.js", "vendor/preact.js"} <= loaded
    assert sum(len(files[name].compressed) for name in loaded) < SIZE_BYTES_MAX
    assert all(gzip.decompress(file.compressed) == file.body for file in files.values())


def test_vendored_files_are_as_published() -> None:
    sums = (STATIC / "vendor" / "SHA256SUMS.txt").read_text()
    vendored = dict(reversed(line.split()) for line in sums.splitlines())
    names = {name.removeprefix("vendor/") for name in page_files() if name.startswith("vendor/")}
    assert set(vendored) == names - {"SHA256SUMS.txt", "LICENSES.txt"}
    for name, digest in vendored.items():
        body = (STATIC / "vendor" / name).read_bytes()
        assert hashlib.sha256(body).hexdigest() == digest, name


def test_modules_import_what_exists_and_nothing_of_another_host() -> None:
    files = page_files()
    for name, file in files.items():
        text = file.body.decode()
        if name.startswith("vendor/"):
            continue
        assert not FOREIGN.search(text), name
        assert not re.search(r"\beval\(|innerHTML|new Function|style=\"", text), name
        for target in targets(name, text):
            assert target in files, f"{name} imports {target}"
