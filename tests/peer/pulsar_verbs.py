"""``pulsar-admin`` with every verb that ``headgate admin`` has too, against a broker of ours.

``pulsar_verbs.txt`` has the commands, in the form of ``pulsar_tools.txt``. A start of the tool
takes two seconds, so one process of it (``pulsar/AdminLoop.java``) carries out all of them. In
braces are the broker's name, a file of a schema, and the ledger that ``last-message-id`` named.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.peer.pulsar_tools import Step, Tools, plain, problem_of, read_story

STORY: Final = Path(__file__).with_suffix(".txt")
LOOP: Final = Path(__file__).with_name("pulsar") / "AdminLoop.java"
_LEDGER = re.compile(r'"ledgerId" : (\d+)')
STRING: Final = {"type": "STRING", "schema": "", "properties": {}}


class AdminLoop:
    """The tool, for as long as this is open."""

    def __init__(self, java: str, jars: Path, config: Path) -> None:
        logging = LOOP.with_name("log4j2.xml")
        self._process = subprocess.Popen(
            [
                java, f"-Dlog4j.configurationFile={logging}", "-Xmx512m", "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(LOOP), str(config),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def __enter__(self) -> AdminLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def answer(self, words: list[str]) -> tuple[bool, str]:
        """Whether a command succeeded, and what it printed."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("\t".join(words).encode() + b"\n")
        stdin.flush()
        result, _, size = stdout.readline().decode().partition(" ")
        return result == "ok", stdout.read(int(size)).decode()


def play_verbs(java: str, jars: Path) -> int:
    """Play the story; 0 if all was right."""
    steps = read_story(STORY.read_text(encoding="utf-8"))
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary, plain(Path(temporary)) as values:
        folder = Path(temporary)
        config, schema = folder / "client.conf", folder / "schema.json"
        config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        schema.write_text(json.dumps(STRING))
        given = {"schema": str(schema), "broker": values["webServiceUrl"].removeprefix("http://")}
        tools = Tools(java, jars, config)
        with AdminLoop(java, jars, config) as loop:
            for step in steps:
                tool, *words = (word.format(**given) for word in step.words)
                if tool == "admin":
                    is_done, text = loop.answer(words)
                    problem = problem_of(step, text, is_done=is_done)
                    if named := _LEDGER.search(text):
                        given["ledger"] = named[1]
                else:
                    problem = tools.problem(Step([tool, *words], step.prints, step.fails))
                if problem:
                    wrong += 1
                    sys.stdout.write(f"{' '.join(step.words)}: {problem}\n")
    sys.stdout.write(f"pulsar-admin, {len(steps)} commands\n")
    return 1 if wrong else 0
