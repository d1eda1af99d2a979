"""The broker opens no connection: no request of a client can make it reach something else."""

from __future__ import annotations

import ast

from tests.tidy.tree import Module, report, written_modules

CLIENT_SIDE = {"access", "agent", "cli", "demo", "pipeline", "pyspark_pulsar", "testing"}
"""Layers of commands, which connect to what their user names."""
EXPORT = {"headgate.app.open_telemetry", "headgate.telemetry.otel"}
"""The export of metrics, to the address of the broker's environment."""
ISSUERS = {"headgate.app.issuer_http"}
"""Issuers, by the URLs of ``openIDAllowedTokenIssuers`` and what their configuration names: a token
that names another one is refused before anything is fetched
(``tests/unit/security/test_openid.py``), and so is an answer of another one to a reader who signs
in."""
CONNECTS = {
    "create_connection", "open_connection", "open_unix_connection", "urlopen", "urlretrieve",
    "PoolManager", "HTTPConnection", "HTTPSConnection", "connect", "connect_ex", "sock_connect",
    "create_datagram_endpoint", "sendto",
}  # fmt: skip
NOT_A_SOCKET = {"sqlite3.connect", "self._handshake.connect"}
LIBRARIES = {
    "urllib3", "requests", "httpx", "httpx2", "aiohttp", "pulsar", "smtplib", "ftplib",
    "http.client", "urllib.request", "xmlrpc",
}  # fmt: skip
"""Modules whose purpose is to connect."""


def test_the_broker_opens_no_connection() -> None:
    problems = []
    checked = 0
    for module in written_modules():
        if module.layer in CLIENT_SIDE or any(map(module.name.startswith, EXPORT | ISSUERS)):
            continue
        checked += 1
        problems += [f"{module.where}:{line}: {name}" for line, name in _connecting(module)]
    assert checked > 200
    assert not problems, report(problems)


def _connecting(module: Module) -> list[tuple[int, str]]:
    found = []
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found += [(node.lineno, each.name) for each in node.names if each.name in LIBRARIES]
        elif isinstance(node, ast.ImportFrom) and node.module in LIBRARIES:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name.rpartition(".")[2] in CONNECTS and name not in NOT_A_SOCKET:
                found.append((node.lineno, name))
    return found
