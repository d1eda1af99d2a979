"""Secrets are compared in constant time: by ``hmac.compare_digest``, or by a library."""

from __future__ import annotations

import ast

from tests.tidy.tree import report, written_modules

SECRETS = ("digest", "signature", "password", "secret", "hashed", "mac", "token")
"""Words in the names of values of which nothing may be found out by comparing."""
LAYER = "security"


def test_secrets_are_compared_in_constant_time() -> None:
    problems, modules = [], 0
    for module in written_modules():
        if module.layer != LAYER:
            continue
        modules += 1
        for node in module.nodes:
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            compares = any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops)
            if compares and any(_is_secret(side) for side in sides):
                problems.append(f"{module.where}:{node.lineno}: {ast.unparse(node)}")
    assert modules > 5
    assert not problems, report([*problems, "use hmac.compare_digest"])


def _is_secret(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return False  # len(secret), and the result of compare_digest
    name = ast.unparse(node).lower().rpartition(".")[2]
    return any(word in name.split("_") for word in SECRETS)
