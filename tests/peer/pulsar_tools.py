"""Apache Pulsar's own command-line tools against a broker of ours: ``pulsar-admin``,
``pulsar-client`` and ``pulsar-perf``, over plain ports and over TLS with a token.

``pulsar_tools.txt`` has the commands. Lines behind one are checked: ``=`` is a part of what it
prints, ``!`` a part of how it fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.peer.secured_broker import secured_broker
from tests.service.process import BrokerProcess

STORY: Final = Path(__file__).with_suffix(".txt")
COMMAND_LIMIT_S: Final = 120
MAINS: Final = {
    "admin": "org.apache.pulsar.admin.cli.PulsarAdminTool",
    "client": "org.apache.pulsar.client.cli.PulsarClientTool",
    "perf": "org.apache.pulsar.testclient.PulsarPerfTestTool",
}
_LOGGING: Final = Path(__file__).with_name("pulsar") / "log4j2.xml"
SHOWN_CHARACTERS: Final = 2_000


@dataclass
class Step:
    """One command, and what is expected of it."""

    words: list[str]
    prints: list[str] = field(default_factory=list)
    fails: list[str] = field(default_factory=list)
    """Parts of the text of its failure; none: it must succeed."""


def read_story(text: str) -> list[Step]:
    """The commands of a story, in order."""
    steps: list[Step] = []
    for line in text.splitlines():
        if line.startswith("= "):
            steps[-1].prints.append(line[2:])
        elif line.startswith("! "):
            steps[-1].fails.append(line[2:])
        elif line and not line.startswith("#"):
            steps.append(Step(line.split(" ")))
    return steps


class Tools:
    """Runs the tools with one configuration."""

    def __init__(self, java: str, jars: Path, config: Path) -> None:
        self._java = java
        self._jars = jars
        self._config = config

    def problem(self, step: Step) -> str:
        """What is wrong with the end of a command; empty if nothing is."""
        tool, *words = step.words
        command = [
            self._java, f"-Dlog4j.configurationFile={_LOGGING}", "-Xmx512m", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "-cp", f"{self._jars}/*", MAINS[tool], str(self._config),
            *words,
        ]  # fmt: skip
        try:
            result = subprocess.run(
                command, check=False, timeout=COMMAND_LIMIT_S, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"ended after {COMMAND_LIMIT_S} s"
        return problem_of(step, result.stdout, is_done=not result.returncode)


def problem_of(step: Step, text: str, *, is_done: bool) -> str:
    """What is wrong with what a command printed and whether it succeeded; empty if nothing is."""
    shown = text[-SHOWN_CHARACTERS:]
    lacking = [part for part in (*step.prints, *step.fails) if part not in text]
    if lacking:
        return f"does not print {lacking}:\n{shown}"
    if is_done is bool(step.fails):
        return f"{'succeeds' if is_done else 'fails'}:\n{shown}"
    return ""


@contextmanager
def plain(folder: Path) -> Iterator[dict[str, str]]:
    """A broker without authentication: what the tools' configuration says of it."""
    broker = BrokerProcess(folder).start()
    try:
        yield {"webServiceUrl": broker.admin_url, "brokerServiceUrl": broker.service_url}
    finally:
        broker.close()


@contextmanager
def secured(folder: Path) -> Iterator[dict[str, str]]:
    """The same for one that only offers TLS and asks for a token."""
    with secured_broker(folder) as found:
        yield {
            "webServiceUrl": found.broker.admin_url_tls,
            "brokerServiceUrl": found.broker.service_url_tls,
            "useTls": "true",
            "authPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "authParams": f"file://{found.token}",
            "tlsTrustCertsFilePath": str(found.authority),
            "tlsEnableHostnameVerification": "true",
        }


def play_tools(java: str, jars: Path) -> int:
    """Play the story on both brokers; 0 if all was right."""
    steps = read_story(STORY.read_text(encoding="utf-8"))
    wrong = 0
    for name, start in (("plain", plain), ("secured", secured)):
        with tempfile.TemporaryDirectory() as temporary, start(Path(temporary)) as values:
            config = Path(temporary) / "client.conf"
            config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
            tools = Tools(java, jars, config)
            for step in steps:
                if problem := tools.problem(step):
                    wrong += 1
                    sys.stdout.write(f"{name}: {' '.join(step.words)}: {problem}\n")
        sys.stdout.write(f"Pulsar's tools, {name}: {len(steps)} commands\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(play_tools(os.environ.get("JAVA", "java"), Path(sys.argv[1])))
