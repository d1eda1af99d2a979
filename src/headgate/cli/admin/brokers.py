"""The verbs of ``headgate admin brokers``."""

from __future__ import annotations

from typing import Final

from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.output import as_lines, as_map
from headgate.cli.admin.values import int32
from headgate.cli.admin.verbs import (
    CLUSTER_NAME,
    Server,
    Values,
    Verb,
    echo,
    option,
    send,
    show,
    show_text,
    switch,
)

_PATH: Final = "/admin/v2/brokers"
_SETTINGS: Final = f"{_PATH}/configuration"

_RUNTIME: Final = show(f"{_SETTINGS}/runtime", as_map)

_NAME: Final = option("--config -c", "configName", str, "The setting's name.", required=True)
_VALUE: Final = option(
    "--value -v", "configValue", str, "Its new value.", required=True
)  # fmt: skip
_VERSION: Final = option("--topic-version -tv", "topicVersion", str, "V1 or V2; no effect.")


def check_quotas(server: Server, values: Values) -> None:
    """Verify all backlog quotas and print ``ok``."""
    send("GET", f"{_PATH}/backlog-quota-check")(server, values)
    echo("ok")


GROUP: Final = VerbGroup(
    "brokers",
    "Show the broker, change its dynamic settings.",
    (
        Verb("list", "List a cluster's brokers.", (CLUSTER_NAME,),
             show(f"{_PATH}/{{cluster}}", as_lines)),
        Verb("leader-broker", "Show the leader broker.", (), show(f"{_PATH}/leaderBroker")),
        Verb(
            "namespaces", "List the hash ranges that a broker owns: all.",
            (
                CLUSTER_NAME,
                option("--url -u", "brokerUrl", str, "The broker, as list shows it.",
                       required=True),
            ),
            show(f"{_PATH}/{{cluster}}/{{brokerUrl}}/ownedNamespaces", as_map),
        ),
        Verb(
            "shutdown", "Close the broker.",
            (
                option("--max-concurrent-unload-per-sec -m", "maxConcurrentUnloadPerSec", int32,
                       "No effect: one broker moves no topic.", default="0"),
                switch("--forced-terminate-topic -f", "forcedTerminateTopic",
                       "No effect: all clients are disconnected."),
            ),
            send("POST", f"{_PATH}/shutdown",
                 ("maxConcurrentUnloadPerSec={maxConcurrentUnloadPerSec}",
                  "forcedTerminateTopic={forcedTerminateTopic}")),
        ),
        Verb("healthcheck", "Print ok if a commit to the log works.", (_VERSION,),
             show_text(f"{_PATH}/health", ("topicVersion={topicVersion}",))),
        Verb("backlog-quota-check", "Verify all backlog quotas and print ok.", (), check_quotas),
        Verb("version", "Print the broker's version.", (), show_text(f"{_PATH}/version")),
        Verb("get-internal-config", "Show the location of the metadata.", (),
             show(f"{_PATH}/internal-configuration")),
        Verb("list-dynamic-config", "List the settings that may change while the broker runs.", (),
             show(_SETTINGS, as_lines)),
        Verb("get-all-dynamic-config", "Print the dynamic settings that were changed.", (),
             show(f"{_SETTINGS}/values", as_map)),
        Verb("get-runtime-config", "Print all settings with their present values.", (),
             _RUNTIME),
        Verb("get-runtime-configuration", "Another name for get-runtime-config.", (),
             _RUNTIME),
        Verb("update-dynamic-config", "Change a dynamic setting, now and for later starts.",
             (_NAME, _VALUE), send("POST", f"{_SETTINGS}/{{configName}}/{{configValue}}")),
        Verb("delete-dynamic-config", "Restore the start-up value of a setting.", (_NAME,),
             send("DELETE", f"{_SETTINGS}/{{configName}}")),
    ),
)  # fmt: skip
