"""The files of the page: small, complete, and those of the publishers unchanged."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from importlib import resources

from headgate.page.files import INDEX, SERVER, history_files, page_files

SIZE_BYTES_MAX = 60 * 1024
"""Of all files that a browser loads, compressed."""
IMPORTED = re.compile(r"""(?:from|import)\s+["'](\.[^"']+)["']""")
LATER = r"""(?:(?:from|import)\s+|import\((?=["']\./{}))["'](\.[^"']+)["']"""
"""Also the views of one kind of server, which are loaded only there."""
LIVE, PAST = re.compile(LATER.format("index")), re.compile(LATER.format("past"))
FOREIGN = re.compile(r"(?:src|href|from|import|fetch\()\s*=?\s*[\"'(]\s*(?:https?:)?//")
"""An address of another host."""
STATIC = resources.files("headgate.page") / "static"


def test_what_a_browser_loads_is_small() -> None:
    files = page_files()
    live, past = loaded_by(LIVE), loaded_by(PAST)
    assert loaded_by(IMPORTED) < live & past
    assert {name for name in files if name.startswith("app/")} <= live | past
    for loaded in (live, past):
        assert sum(len(files[name].compressed) for name in loaded) < SIZE_BYTES_MAX
    assert all(gzip.decompress(file.compressed) == file.body for file in files.values())


def loaded_by(imports: re.Pattern[str]) -> set[str]:
    """What the document names, and all modules that its script imports, by others too."""
    files = page_files()
    waiting = [INDEX, SERVER, *re.findall(r'(?:src|href)="(\w[^"]+)"', files[INDEX].body.decode())]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            text = files[name].body.decode() if name.startswith("app/") else ""
            waiting += (path_of(name, target) for target in imports.findall(text))
    return found


def path_of(name: str, target: str) -> str:
    """What a module imports by a relative path."""
    path: list[str] = []
    for part in [*name.rpartition("/")[0].split("/"), *target.split("/")]:
        if part == "..":
            path.pop()
        elif part not in (".", ""):
            path.append(part)
    return "/".join(path)


def test_a_server_of_the_past_says_so() -> None:
    files, past = page_files(), history_files()
    assert json.loads(files[SERVER].body) == {"live": True, "history": False}
    assert json.loads(past[SERVER].body) == {"live": False, "history": True}
    assert {**past, SERVER: files[SERVER]} == files
    assert past[SERVER].etag != files[SERVER].etag


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
        for target in {*LIVE.findall(text), *PAST.findall(text)}:
            assert path_of(name, target) in files, f"{name} imports {target}"
