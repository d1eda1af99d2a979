"""Marked secrets, and every place of ours that takes one.

A new place is a row in :data:`TOOLS`, or in :data:`SETTINGS_WITH_SECRETS` for a setting of the
broker with ``is_secret``; ``test_secrets.py`` does the rest.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import bcrypt
import click

from headgate.policy.settings import SETTINGS

UNREACHABLE = "127.0.0.1:9"


class Marks:
    """Makes secrets that are found again in any output, however it encodes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, str] = {}

    def text(self, what: str) -> str:
        """A secret, of which no part could be there by chance."""
        return self._made.setdefault(
            what, f"m4rked-{what.replace(' ', '-')}-{len(self._made)}-q7zJ/x+s3cret"
        )

    def note(self, what: str, text: str) -> None:
        """A secret that was made elsewhere."""
        self._made[what] = text

    def key(self, what: str) -> str:
        """A secret key as base64."""
        return base64.b64encode(self.text(what).ljust(64, "k").encode()).decode()

    def file(self, what: str, content: str | None = None) -> str:
        """The path of a file with a secret, readable by its owner alone."""
        path = self.folder / what.replace(" ", "-")
        path.touch(0o600)
        path.write_text(content if content is not None else self.text(what))
        return str(path)

    def found_in(self, output: str | bytes) -> list[str]:
        """The secrets that an output shows, by their names."""
        data = output if isinstance(output, bytes) else output.encode("utf-8", "replace")
        return [what for what, text in self._made.items() if _shows(data, text)]


def _shows(data: bytes, text: str) -> bool:
    raw = text.encode()
    # The middle of a base64 text, whatever stands before and after the secret.
    encoded = [base64.b64encode(b"_" * lead + raw)[4:-4] for lead in range(3)]
    forms = [raw, quote(text, safe="").encode(), raw.hex().encode(), *encoded]
    forms += [form.translate(bytes.maketrans(b"+/", b"-_")) for form in encoded]
    return any(form in data for form in forms)


def _passwords(marks: Marks) -> str:
    """A file of passwords with one line, in the setting itself."""
    hashed = bcrypt.hashpw(marks.text("password").encode(), bcrypt.gensalt(4)).decode()
    marks.note("hash of a password", hashed)
    return "data:;base64," + base64.b64encode(f"ann:{hashed}\n".encode()).decode()


SETTINGS_WITH_SECRETS: dict[str, Callable[[Marks], str]] = {
    "tokenSecretKey": lambda marks: marks.key("token secret"),
    "headgateTokenSecretKeyOther": lambda marks: marks.key("other token secret"),
    "basicAuthConf": _passwords,
}
"""A marked value, which the broker accepts, for each setting whose value is a secret."""


def secret_settings() -> list[str]:
    """The settings whose value is a secret."""
    return [name for name, info in SETTINGS.items() if getattr(info, "is_secret", False)]


@dataclass(frozen=True)
class Tool:
    """One run of a command with secrets."""

    name: str
    words: Callable[[Marks], list[str]]
    """After ``headgate``. What a user puts onto a command line is the user's to hide, so no
    secret is here but in files."""
    environment: Callable[[Marks], Mapping[str, str]] = field(default=lambda _: {})
    stdin: Callable[[Marks], str] = field(default=lambda _: "")
    may_show: tuple[str, ...] = ()
    """Secrets that it is asked to print."""


def _tables(marks: Marks) -> str:
    path = marks.folder / "tables"
    path.mkdir(exist_ok=True)
    return str(path)


_S3 = {
    "AWS_ENDPOINT_URL": f"http://{UNREACHABLE}",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


def _s3(marks: Marks) -> dict[str, str]:
    return {
        **_S3,
        "AWS_ACCESS_KEY_ID": marks.text("S3 key id"),
        "AWS_SECRET_ACCESS_KEY": marks.text("S3 key"),
        "AWS_SESSION_TOKEN": marks.text("S3 session"),
    }


def _alerts(marks: Marks, *words: str) -> list[str]:
    return ["pipeline", "alerts", "--out", _tables(marks), *words]


_BROKER = ["--broker-url", f"pulsar+ssl://{UNREACHABLE}", "--web-url", f"https://{UNREACHABLE}"]

_WEB = f"http://{UNREACHABLE}"


def _conf(marks: Marks, what: str, plugin: str, params: str) -> str:
    """A client.conf with credentials."""
    lines = f"webServiceUrl={_WEB}\nauthPlugin={plugin}\nauthParams={params}\n"
    return marks.file(f"conf of {what}", lines)


def _password_conf(marks: Marks, what: str) -> str:
    return _conf(marks, what, "basic", f'{{"userId":"u","password":"{marks.text(what)}"}}')


def _broken_conf(marks: Marks, what: str) -> str:
    """Credentials that cannot be read: the error must not repeat them."""
    return _conf(marks, what, "basic", f'{{"userId":"u","password":"{marks.text(what)}')


def _url_conf(marks: Marks) -> str:
    user = f"u:{quote(marks.text('password in a URL'), safe='')}@{UNREACHABLE}"
    return f"webServiceUrl=http://{user}\nbrokerServiceUrl=pulsar://{user}\n"


def _oauth2_conf(marks: Marks) -> str:
    secret = marks.text("OAuth2 secret")
    key = marks.file("OAuth2 key", f'{{"client_id": "c", "client_secret": "{secret}"}}')
    params = f'{{"issuerUrl":"{_WEB}","privateKey":"file://{key}","audience":"a"}}'
    return _conf(marks, "OAuth2", "oauth2", params)


TOOLS = (
    Tool(
        "admin, a token file",
        lambda m: ["admin", "--admin-url", _WEB, "--token-file", m.file("admin token"),
                   "tenants", "list"],
    ),
    Tool(
        "admin, a token of the environment",
        lambda m: ["admin", "--admin-url", _WEB, "tenants", "list"],
        lambda m: {"HEADGATE_TOKEN": m.text("admin token of the environment")},
    ),
    Tool(
        "admin, a password of a client.conf",
        lambda m: ["admin", "--config", _password_conf(m, "admin password"), "tenants", "list"],
    ),
    Tool(
        "admin, the secret of an OAuth2 client",
        lambda m: ["admin", "--config", _oauth2_conf(m), "tenants", "list"],
    ),
    Tool(
        "admin, a password that cannot be read",
        lambda m: ["admin", "--config", _broken_conf(m, "broken password"), "tenants", "list"],
    ),
    Tool(
        "admin, a password in a URL of a client.conf",
        lambda m: ["admin", "--config", m.file("conf of a URL", _url_conf(m)), "tenants", "list"],
    ),
    Tool(
        "run, a password in the URL of a client.conf",
        lambda m: ["pipeline", "run", "--out", _tables(m), "--config",
                   m.file("conf of another URL", _url_conf(m))],
    ),
    Tool(
        "explain, a token of the environment",
        lambda _: ["explain", "--admin-url", _WEB],
        lambda m: {"HEADGATE_TOKEN": m.text("explain token")},
    ),
    Tool(
        "explain, the secret of an OAuth2 client",
        lambda m: ["explain", "--config", _oauth2_conf(m), "t"],
    ),
    Tool("top, a password", lambda m: ["top", "--config", _password_conf(m, "top password")]),
    Tool(
        "agent, a password that cannot be read",
        lambda m: ["agent", "--config", _broken_conf(m, "agent password")],
    ),
    Tool(
        "backup, a password",
        lambda m: ["backup", "--to", _tables(m), "--config", _password_conf(m, "backup password")],
    ),
    Tool(
        "revocation of a token that is none",
        lambda m: ["tokens", "revocation", "-f", m.file("token to revoke")],
    ),
    Tool(
        "a key pair",
        lambda m: ["tokens", "create-key-pair", "--output-private-key",
                   m.file("there already"), "--output-public-key", m.file("public")],
    ),
    Tool(
        "attribute, a password",
        lambda m: ["pipeline", "attribute", "--out", _tables(m), "--since", "1h", "--config",
                   _password_conf(m, "attribute password")],
    ),
    Tool(
        "stream, a token",
        lambda m: ["pipeline", "stream", "--out", _tables(m), *_BROKER, "--token-file",
                   m.file("stream token file")],
    ),
    Tool(
        "tokens create",
        lambda m: ["tokens", "create", "-s", "role", "-sk", m.file("secret key", m.key("key"))],
    ),
    Tool(
        "tokens create, a key that is none",
        lambda m: ["tokens", "create", "-s", "role", "-pk", m.file("no private key")],
    ),
    Tool(
        "tokens create, a key that others may read",
        lambda m: ["tokens", "create", "-s", "role", "-sk", _open_to_all(m)],
    ),
    Tool(
        "tokens validate, a wrong token",
        lambda m: ["tokens", "validate", "-f", m.file("token"), "-sk", m.file("key 2", m.key("k"))],
    ),
    Tool(
        "tokens show, a wrong token",
        lambda _: ["tokens", "show", "-i"],
        stdin=lambda m: f"eyJ.{m.text('token of stdin')}.x",
    ),
    Tool(
        "alerts, a token",
        lambda m: _alerts(m, "--alertmanager", f"http://{UNREACHABLE}", "--token-file",
                          m.file("alerts token file")),
    ),
    Tool(
        "alerts, a token of the environment",
        lambda m: _alerts(m, "--alertmanager", f"http://{UNREACHABLE}"),
        lambda m: {"HEADGATE_ALERTS_TOKEN": m.text("alerts token")},
    ),
    Tool(
        "alerts, a password",
        lambda m: _alerts(m, "--alertmanager", f"http://{UNREACHABLE}", "--user", "ops"),
        lambda m: {"HEADGATE_ALERTS_PASSWORD": m.text("alerts password")},
    ),
    Tool(
        "alerts, a webhook with a secret in its path",
        lambda m: _alerts(m, "--webhook-file", m.file(
            "webhook", f"http://{UNREACHABLE}/hooks/{quote(m.text('webhook path'))}")),
    ),
    Tool(
        "alerts, a webhook that is none",
        lambda m: _alerts(m),
        lambda m: {"HEADGATE_ALERTS_WEBHOOK": f"ftp://u:{m.text('webhook password')}@host/x"},
    ),
    Tool(
        "tables in S3",
        lambda _: ["pipeline", "show", "episodes", "--out", "s3://headgate-none/tables"],
        _s3,
    ),
    Tool(
        "a folder with a key in its URL",
        lambda _: ["pipeline", "show", "episodes", "--out", "s3://key@bucket/tables"],
        _s3,
    ),
    Tool(
        "run, a token",
        lambda m: ["pipeline", "run", "--out", _tables(m), *_BROKER, "--token-file",
                   m.file("broker token file")],
    ),
    Tool(
        "run, a token of the environment, and lineage with a key",
        lambda m: ["pipeline", "run", "--out", _tables(m), *_BROKER,
                   "--openlineage", f"http://{UNREACHABLE}"],
        lambda m: {"HEADGATE_TOKEN": m.text("broker token"),
                   "OPENLINEAGE_API_KEY": m.text("lineage key")},
    ),
)  # fmt: skip
"""Every command that takes a secret, ended by a target that is not there or a value that is wrong:
errors are where secrets get out."""


SECRET_OPTIONS = frozenset(
    {"--auth-params", "--token-file", "--password-file", "--webhook-file", "--secret-key",
     "--private-key", "--output-private-key"}
)  # fmt: skip
"""Options that give a command a secret, or the file with one."""


def commands_with_secrets(group: click.Group) -> set[tuple[str, ...]]:
    """The commands of a program that take a secret, each by its words."""
    found: set[tuple[str, ...]] = set()

    def look(command: click.Command, words: tuple[str, ...]) -> None:
        names = {name for each in command.params for name in getattr(each, "opts", ())}
        if names & SECRET_OPTIONS:
            found.add(words)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                look(below, (*words, name))

    context = click.Context(group)
    look(group, ())
    return found


def _open_to_all(marks: Marks) -> str:
    path = marks.file("open key", marks.key("open"))
    os.chmod(path, 0o644)
    return path


def run_tool(tool: Tool, marks: Marks, limit_s: float = 60.0) -> dict[str, str]:
    """Run it to its end; returns what everybody could see: both outputs, and the command lines of
    its processes."""
    environment = {**os.environ, **tool.environment(marks)}
    command = [sys.executable, "-m", "headgate.cli", *tool.words(marks)]
    out, err = marks.folder / "stdout", marks.folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=environment
        )
        assert process.stdin is not None
        process.stdin.write(tool.stdin(marks).encode())
        process.stdin.close()
        end, lines = time.monotonic() + limit_s, ""
        while process.poll() is None and time.monotonic() < end:
            lines += command_lines(process.pid)
            time.sleep(0.05)
        process.kill()
        process.wait()
    shown = {
        "stdout": out.read_text("utf-8", "replace"),
        "stderr": err.read_text("utf-8", "replace"),
    }
    assert time.monotonic() < end, f"{tool.name} does not end: {shown}"
    return {**shown, "command lines": lines, "status": str(process.returncode)}


def command_lines(pid: int) -> str:
    """Of a process and its children, as every user of the machine sees them."""
    found = ""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if int(path.name) == pid or int(fields[1]) == pid:
                found += (path / "cmdline").read_bytes().replace(b"\0", b" ").decode() + "\n"
        except OSError:
            continue  # it has ended
    return found
