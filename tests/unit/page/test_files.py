"""The files of the page: small, complete, and those of the publishers unchanged."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from importlib import resources

from headgate.page.files import (
    INDEX,
    SERVER,
    agent_files,
    broker_files,
    history_files,
    page_files,
)

SIZE_BYTES_MAX = 60 * 1024
"""Of all files that a browser loads, also when its reader opens a dialog, compressed."""
DIALOG = "app/actions/dialog.js"
DIALOG_BYTES_MAX = 3 * 1024
"""Of what is loaded when a reader opens the dialog of an action."""
IMPORTED = re.compile(r"""(?:from|import)\s+["'](\.[^"']+)["']""")
LATER = re.compile(r"""(?:(?:from|import)\s+|import\()["'](\.[^"']+)["']""")
"""Also modules that are loaded only if the server can fill their views."""
FOREIGN = re.compile(r"(?:src|href|from|import|fetch\()\s*=?\s*[\"'(]\s*(?:https?:)?//")
"""An address of another host."""
STATIC = resources.files("headgate.page") / "static"


SERVERS = {"broker": ["live", "inside"], "agent": ["live", "cluster"], "tables": ["past"]}
"""Which modules of views a browser loads over each kind of server, as ``views/index.js`` does."""


def test_what_a_browser_loads_is_small() -> None:
    files = page_files()
    first = loaded_by([INDEX, SERVER])
    assert {INDEX, "app/main.js"} < first
    for views in SERVERS.values():
        loaded = first | loaded_by([DIALOG, *(f"app/views/{name}.js" for name in views)])
        assert first < loaded
        assert sum(len(files[name].compressed) for name in loaded) < SIZE_BYTES_MAX
    whole = first | loaded_by(["app/views/live.js"])
    opened = loaded_by([DIALOG]) - whole
    assert DIALOG in opened
    assert sum(len(files[name].compressed) for name in opened) < DIALOG_BYTES_MAX
    later = set(LATER.findall(files["app/views/index.js"].body.decode()))
    assert later == {f"./{name}.js" for views in SERVERS.values() for name in views}
    assert all(gzip.decompress(file.compressed) == file.body for file in files.values())


def loaded_by(names: list[str]) -> set[str]:
    """These files, what the document names, and all modules that scripts import, by others too."""
    files = page_files()
    waiting = list(names)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            text = files[name].body.decode()
            if name == INDEX:
                waiting += re.findall(r'(?:src|href)="(\w[^"]+)"', text)
            elif name.startswith("app/"):
                waiting += (path_of(name, target) for target in IMPORTED.findall(text))
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
    broker = json.loads(files[SERVER].body)
    assert (broker["live"], broker["history"], "cluster" in broker["views"]) == (True, False, False)
    assert json.loads(past[SERVER].body) == {"live": False, "history": True}
    assert {**past, SERVER: files[SERVER]} == files
    assert past[SERVER].etag != files[SERVER].etag


def test_a_server_says_which_views_it_can_fill() -> None:
    broker, agent = (
        json.loads(files[SERVER].body)["views"] for files in (page_files(), agent_files())
    )
    views = STATIC / "app" / "views"
    registries = [(views / name).read_text() for name in ("live.js", "inside.js", "cluster.js")]
    in_menu = re.findall(r'path: "(\w+)", name:', "".join(registries))
    assert [*broker, "cluster"] == in_menu
    assert set(broker) - set(agent) == {"adaptive", "broker", "browse"}
    assert set(agent) - set(broker) == {"cluster"}
    assert f"views: {json.dumps(broker)}" in (STATIC / "app" / "server.js").read_text()


def test_a_broker_names_the_issuer_at_which_readers_sign_in() -> None:
    files, own = page_files(), broker_files("https://issuer.example")
    said = json.loads(own[SERVER].body)
    assert said == {**json.loads(files[SERVER].body), "signIn": "https://issuer.example"}
    assert {**own, SERVER: files[SERVER]} == files
    assert own[SERVER].etag != files[SERVER].etag


def test_scripts_come_without_comments_and_indentation_at_the_same_lines() -> None:
    """A line in a template that looks like a comment would be lost: none is."""
    empty = 0
    for name, file in page_files().items():
        if not name.startswith("app/"):
            continue
        sent = file.body.decode().split("\n")
        known = (STATIC / name).read_text().split("\n")
        assert len(sent) == len(known), name
        for at, (line, of_source) in enumerate(zip(sent, known, strict=True)):
            if line != of_source.lstrip(" \t"):
                empty += 1
                assert (line, of_source.strip()[:2]) == ("", "//"), f"{name}:{at + 1}"
                assert "\n".join(sent[:at]).count("`") % 2 == 0, f"{name}:{at + 1}"
    assert empty > 100


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
        for target in LATER.findall(text):
            assert path_of(name, target) in files, f"{name} imports {target}"


def test_no_template_loses_the_distance_between_words() -> None:
    """htm drops a line break beside a tag or a value, with the spaces around it."""
    beside_a_tag = re.compile(r"</(?:a|code|small|span|strong)>\n\s*[a-z]")
    before_a_figure = re.compile(r"[a-z,;:]\n\s*\$\{(?:bytes|count|duration|percent|plural|rate)\(")
    for name, file in page_files().items():
        if name.startswith("app/"):
            text = file.body.decode()
            assert not beside_a_tag.search(text), name
            assert not before_a_figure.search(text), name
