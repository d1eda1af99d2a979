"""Groups and verbs of the command line, their help and their errors."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from headgate.admin.table import ROUTES
from headgate.cli.admin.command import VerbCommand, VerbGroup, admin_group
from headgate.metadata.policies import COUNT_NAMES, TOPIC_COUNT_NAMES
from tests.unit.cli.admin.fake_server import FakeServer, Reply, admin

GUIDES = Path(__file__).parents[4] / "docs" / "guide"
HEAVY = ("rich", "urllib3", "asyncio", "msgspec", "google", "headgate.broker", "headgate.admin")


NAMES = admin_group.list_commands(click.Context(admin_group))


def groups() -> dict[str, VerbGroup]:
    found = {name: admin_group.get_command(click.Context(admin_group), name) for name in NAMES}
    return {name: group for name, group in found.items() if isinstance(group, VerbGroup)}


NEEDED_SWITCHES = {
    "set-schema-validation-enforce": ("--enable",),
    "set-is-allow-auto-update-schema": ("--enable",),
    "set-deduplication": ("--enable",),
    "set-delayed-delivery": ("--enable",),
    "set-encryption-required": ("--enable",),
    "namespaces clear-backlog": ("--force",),
    "set-replicated-subscription-status": ("--disable",),
    "set-inactive-topic-policies": ("--enable-delete-while-inactive",),
    "set-auto-topic-creation": ("--enable",),
    "set-auto-subscription-creation": ("--enable",),
}
"""Switches of verbs that need one of several, or ask a question else."""

VERBS = [(group, verb) for group, verbs in groups().items() for verb in verbs.commands]


def test_all_groups_are_there() -> None:
    assert list(groups()) == NAMES
    listed = admin("--help").output
    assert all(f"  {name} " in listed for name in groups())


@pytest.mark.parametrize(("group", "verb"), VERBS, ids=[" ".join(words) for words in VERBS])
def test_every_verb_has_help(server: FakeServer, group: str, verb: str) -> None:
    result = admin(group, verb, "--help")
    assert result.exit_code == 0
    usage = " ".join(result.output.split())
    assert usage.startswith(f"Usage: headgate admin {group} {verb} [OPTIONS]")
    command = groups()[group].commands[verb]
    assert isinstance(command, VerbCommand)
    for parameter in command.verb.parameters:
        assert all(name in result.output for name in parameter.names)
    assert verb in admin(group, "--help").output
    assert server.asked == []


def test_the_broker_has_a_route_for_every_request(server: FakeServer, tmp_path: Path) -> None:
    """What the broker does not do is absent here."""
    schema_file = tmp_path / "schema.json"
    schema_file.write_text("{}")
    words = {
        "tenant": "t", "cluster": "c", "namespaceName": "t/n", "topicName": "t/n/x",
        "configName": "k", "configValue": "v", "retentionTimeInSec": "1m", "sizeLimit": "1M",
        "numPartitions": "1", "subName": "s", "numMessages": "1", "expireTimeInSeconds": "1",
        "limit": "1M", "limitTimeInSec": "1m", "policyStr": "producer_exception",
        "time": "1", "ledgerId": "1", "entryId": "1", "datetime": "2026-01-01T00:00:00Z",
        "role": "r", "roles": "r", "actions": "produce", "authMode": "Prefix", "subscription": "s",
        "operation": "topic.stats", "resource": "t/n", "messageTTL": "1", "expirationTime": "1",
        "maxInactiveDuration": "1", "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "type": "partitioned", "defaultNumPartitions": "2", "subTypes": "Shared",
        "maxMessageSize": "1", "properties": "a=1", "key": "k", "value": "v", "property": "a=1",
        "schemaFileName": str(schema_file), "strategy": "FULL", "compatibility": "Full",
        "bundle": "0x0_0x1", "messageId": "1:1", "clusters": "c", "topics": "x",
        "brokerUrl": "b:1", "keys": "team",
    } | dict.fromkeys((*COUNT_NAMES.values(), *TOPIC_COUNT_NAMES.values()), "1")  # fmt: skip
    segments = [(route.method, route.path.strip("/").split("/")) for route in ROUTES]
    server.replies = [Reply(200, b"")]
    for group, verbs in groups().items():
        for name, command in verbs.commands.items():
            assert isinstance(command, VerbCommand)
            line = [
                f"{parameter.longest_name}={words[parameter.label]}"
                if parameter.names
                else words[parameter.label]
                for parameter in command.verb.parameters
                if parameter.label in words and parameter.read is not None
            ]
            switches = NEEDED_SWITCHES.get(f"{group} {name}", NEEDED_SWITCHES.get(name, ()))
            admin(group, name, *line, *switches)
            assert server.asked, (group, name)
            for method, path, _ in server.asked:
                asked = path.partition("?")[0].strip("/").split("/")
                assert any(
                    method == known
                    and len(route) == len(asked)
                    and all(r.startswith("{") or r == a for r, a in zip(route, asked, strict=True))
                    for known, route in segments
                ), (group, name, method, path)
            server.asked.clear()


@pytest.mark.parametrize(
    ("words", "first_line"),
    [
        (["namespaces", "topics", "t/n", "-f"], "Unknown option: '-f'"),
        (["topics", "stats", "x", "-gpx"], "Unknown option: '-gpx'"),
        (["topics", "stats", "x", "--none=1"], "Unknown option: '--none=1'"),
        (
            ["topics", "stats", "x", "--admin-url", "http://b:1"],
            "Unknown option: '--admin-url'. It goes before 'topics': "
            "headgate admin --admin-url ...",
        ),
        (["topics", "stats"], "Missing required parameter: '<topicName>'"),
        (
            ["topics", "clear-backlog", "x"],
            "Missing required option: '--subscription=<subName>'",
        ),
        (
            ["topics", "skip"],
            "Missing required options and parameters: '--subscription=<subName>', "
            "'--count=<numMessages>', '<topicName>'",
        ),
        (
            ["topics", "skip", "x", "-s", "s", "-n"],
            "Missing required parameter for option '--count' (<numMessages>)",
        ),
        (
            ["topics", "skip", "x", "-s", "s", "-n", "1M"],
            "Invalid value for option '--count': '1M' is not a long",
        ),
        (["namespaces", "policies", "t"], "Invalid namespace 't': tenant/namespace is allowed"),
        (["tenants", "get", "a", "b"], "Got unexpected extra argument (b)"),
        (["topics", "stats", "x", "-gpb=1"], "Option '-gpb' does not take a value."),
        (
            ["namespaces", "set-publsh-rate"],
            "No such command 'set-publsh-rate'; did you mean set-publish-rate?",
        ),
        (["nonsense"], "No such command 'nonsense'."),
        (["namespaces"], "Missing command."),
        ([], "Missing command."),
        (["--nonsense"], "Unknown option: '--nonsense'"),
        (
            ["--request-timeout", "0", "tenants", "list"],
            "Invalid value for option '--request-timeout': 0 is not in the range x>=1.",
        ),
        (
            ["--admin-url", "pulsar://b", "tenants", "list"],
            "Invalid value for option '--admin-url': 'pulsar://b'; use http://HOST:PORT of the "
            "admin API",
        ),
    ],
)
def test_wrong_usage_ends_with_one(server: FakeServer, words: list[str], first_line: str) -> None:
    result = admin(*words)
    assert (result.exit_code, result.stdout, server.asked) == (1, "", [])
    assert result.stderr.splitlines()[0].startswith(first_line)
    assert "Usage: headgate admin" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("topics set-offload-policies x", "Headgate does not have this yet: topics set-offl"),
        ("topics set-offload-policies --help", "Headgate does not have this yet: topics set-offl"),
        ("topicPolicies get-offload-policies x", "Headgate does not have this yet: topicPolicies"),
        ("packages list x", "Headgate does not have this yet: packages list\n"),
        ("--request-timeout 5 source list", "Headgate does not have this yet: source list\n"),
        ("topics set-ofload-policies", "No such command 'set-ofload-policies'; did you mean "
                                       "set-offload-policies? Headgate does not have that yet\n"),
    ],
)  # fmt: skip
def test_what_pulsar_admin_has_and_headgate_does_not(
    server: FakeServer, words: str, sentence: str
) -> None:
    """It was meant: a guess at another verb would mislead, and so would a list of all others."""
    result = admin(*words.split())
    assert result.exit_code == 1
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("\n") == 1
    assert server.asked == []


def test_slips_are_reported_from_verbs_that_are_not_there() -> None:
    for words, meant in (("topics statz", "stats"), ("topics set-retentoin", "set-retention"),
                         ("namespacs list", "namespaces")):  # fmt: skip
        assert f"did you mean {meant}?\n" in admin(*words.split()).stderr
    assert "did you mean" not in admin("topics", "nonsense").stderr


def test_the_command_lines_of_the_guides_are_right(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("order.json").write_text("{}")
    text = "".join(path.read_text() for path in sorted(GUIDES.glob("*.md")))
    lines = re.findall(r"^    (?:\$ )?headgate admin (.*)$", text.replace("\\\n", ""), re.MULTILINE)
    typed = [shlex.split(line.partition("|")[0]) for line in lines if "[" not in line]
    assert len(typed) >= 7
    message_id = {"ledgerId": 1, "entryId": 1, "partitionIndex": -1}
    for words in typed:
        if "terminate" in words:
            server.answer(message_id)
        else:
            server.replies = [Reply()]
        result = admin(*words)
        assert (result.exit_code, len(server.asked)) == (0, 1), (words, result.stderr)
        server.asked.clear()


def test_options_of_the_group(server: FakeServer) -> None:
    server.answer(["public"])
    words = ["--admin-url", "b:9", "--request-timeout", "7", "tenants", "list"]
    result = admin(*words)
    assert (result.exit_code, result.output, server.timeout_s) == (0, "public\n", 7)


def test_failures_end_with_one(server: FakeServer) -> None:
    server.answer({"reason": "Tenant not found"}, status=404)
    result = admin("namespaces", "list", "t")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Tenant not found\n\nReason: Tenant not found\n"
    server.failure = ConnectionRefusedError(111, "refused")
    result = admin("namespaces", "list", "t")
    assert result.exit_code == 1
    assert result.stderr.endswith("\n\nError connecting to Pulsar\n")


def test_it_loads_little() -> None:
    """Each command line is a process of its own, so a script pays for every module again."""
    program = (
        "import sys\nfrom headgate.cli import main\n"
        "main(['admin', 'topics', 'stats', '--help'], standalone_mode=False)\n"
        f"print([n for n in {HEAVY} if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "line",
    [
        "topics stats t/n/x --get-precise-backlog",
        "namespaces get-backlog-quota t/n",
        "namespaces get-backlog-quotas t/n",
        "brokers get-runtime-config",
        "brokers get-runtime-configuration",
        "brokers get-all-dynamic-config",
        "brokers update-dynamic-config --config "
        "adaptivePublisherThrottlingObserveOnly --value true",
    ],
)
def test_what_somebody_asks_whose_producers_are_slowed_down(server: FakeServer, line: str) -> None:
    """The commands that the proposal of adaptive throttling names for that."""
    server.answer({})
    assert admin(*line.split()).exit_code == 0
    assert len(server.asked) == 1
