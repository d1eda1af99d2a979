"""Every operation has a rule, and every refusal a text."""

from __future__ import annotations

import pytest

from headgate.admin.operations import Operation
from headgate.admin.table import ROUTES
from headgate.app.sign_in.routes import OPERATION as SIGN_IN
from headgate.policy.access_rules import RULES, Access, Scope, refusal_of
from headgate.telemetry.prometheus.route import OPERATION as METRICS
from headgate.wire.commands import COMMANDS


def test_every_operation_of_a_command_or_route_has_a_rule_and_no_rule_is_left_over() -> None:
    operations = {facts.operation for facts in COMMANDS.values()}
    operations |= {operation.value for operation in Operation} | {METRICS, SIGN_IN}
    assert set(RULES) == operations


def test_the_path_of_a_route_names_what_its_operation_is_performed_on() -> None:
    needed = {
        Scope.BROKER: "/",
        Scope.TENANT: "{tenant}",
        Scope.NAMESPACE: "{namespace}",
        Scope.TOPIC: "{topic}",
        Scope.SUBSCRIPTION: "{topic}",
    }
    for route in ROUTES:
        if not route.resource_in:
            assert needed[RULES[route.operation].scope] in route.path, route.path


def test_what_is_open_to_clients_without_credentials_is_little() -> None:
    everybody = {name for name, rule in RULES.items() if rule.access is Access.EVERYBODY}
    assert everybody == {"broker.ready", "connection.keep_alive", SIGN_IN}


@pytest.mark.parametrize(
    ("operation", "resource", "status", "text"),
    [
        ("topic.stats", "persistent://t/n/x", 401,
         "Unauthorized to validateTopicOperation for operation [GET_STATS] on topic "
         "[persistent://t/n/x]"),
        ("topic.policy.write", "persistent://t/n/x", 403,
         "Unauthorized to validateTopicPolicyOperation for operation [WRITE] on topic "
         "[persistent://t/n/x]"),
        ("topic.create", "persistent://t/n/x", 403,
         "Unauthorized to validateNamespaceOperation for operation [CREATE_TOPIC] on namespace "
         "[t/n]"),
        ("namespace.policy.write", "t/n", 403,
         "Unauthorized to validateNamespacePolicyOperation for operation [WRITE] on namespace "
         "[t/n]"),
        ("namespace.create", "t/n", 401,
         "Unauthorized to validateTenantOperation for operation [CREATE_NAMESPACE] on tenant [t]"),
        ("tenant.create", "t", 401, "This operation requires super-user access"),
        ("cluster.read", "", 401, "This operation requires authentication"),
        ("unknown", "", 401, "This operation requires super-user access"),
    ],
)  # fmt: skip
def test_refusals_have_pulsars_statuses_and_texts(
    operation: str, resource: str, status: int, text: str
) -> None:
    assert refusal_of(operation, resource) == (status, text)
