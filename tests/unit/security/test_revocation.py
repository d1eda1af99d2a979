"""The form of revocations, and the law that reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InputError
from headgate.security.provider import Principal
from headgate.security.revocation import (
    FILE_ENTRIES_MAX,
    NO_REVOCATIONS,
    SETTING_CHARACTERS_MAX,
    Revocations,
    names_of_setting,
    problem_of_setting,
    revocations_of_file,
    revoked,
)

NOW_S = 1_800_000_000.0


def test_a_role_or_a_token_is_revoked() -> None:
    revocations = Revocations({"bad": math.inf}, {"t1": math.inf})
    assert revoked(Principal("bad"), "", revocations, NOW_S) == "the role 'bad' is revoked"
    assert revoked(Principal("proxy"), "bad", revocations, NOW_S) == "the role 'bad' is revoked"
    assert revoked(Principal("good", token_id="t1"), "", revocations, NOW_S) == (
        "the token 't1' of the role 'good' is revoked"
    )
    for principal in (
        Principal("good"), Principal("good", token_id="t2"), Principal("BAD"), Principal("bad "),
        Principal("t1", token_id="bad"), Principal(""),
    ):  # fmt: skip
        assert not revoked(principal, "", revocations, NOW_S)
        assert not revoked(principal, "", NO_REVOCATIONS, NOW_S)


def test_an_entry_lapses() -> None:
    revocations = Revocations({"bad": NOW_S}, {"t1": NOW_S})
    for principal in (Principal("bad"), Principal("good", token_id="t1")):
        assert revoked(principal, "", revocations, NOW_S - 0.001)
        assert not revoked(principal, "", revocations, NOW_S)


def test_the_entries_of_a_setting() -> None:
    assert names_of_setting("") == names_of_setting(" , ,") == {}
    text = "a, b c ,auth0|x@y.z until 2027-01-15T08:00:00Z, a until 2020-01-01T00:00:00Z"
    assert names_of_setting(text) == {"a": math.inf, "b c": math.inf, "auth0|x@y.z": NOW_S}
    assert names_of_setting("until, x until  2027-01-15T08:00:00Z ") == {
        "until": math.inf,
        "x": NOW_S,
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a until tomorrow", "'a until tomorrow' has no instant after until"),
        ("a until 2027-01-15", "has no instant"),
        ("a until 2027-01-15T08:00:00+01:00", "has no instant"),
        ("a until b until 2027-99-15T08:00:00Z", "has no instant"),
        ("a\x00", r"'a\\x00' is no name"),
        ("x" * 1_001, "is no name"),
        ("x" * (SETTING_CHARACTERS_MAX + 1), "16,385 characters: 16,384 at most"),
    ],
)
def test_a_setting_that_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        names_of_setting(text)
    assert problem_of_setting(text)


def test_the_entries_of_a_file() -> None:
    text = (
        "# who left\n\nrole a, b\n  token t1 until 2027-01-15T08:00:00Z\ntoken t2\r\n"
        "token t1 until 2026-01-15T08:00:00Z\n#role c\n"
    )
    found = revocations_of_file(text, "f")
    assert found.roles == {"a, b": math.inf}
    assert found.token_ids == {"t1": NOW_S, "t2": math.inf}
    assert found.count == 3


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a", "'a' is neither role nor token"),
        ("roles a", "'roles' is neither role nor token"),
        ("role", "is no name of a role or a token"),
        ("token  until 2027-01-15T08:00:00Z", "is no name"),
        ("token t until x", "has no instant"),
    ],
)
def test_a_file_that_is_refused(line: str, why: str) -> None:
    with pytest.raises(InputError, match=f"^f: line 2: .*{why}"):
        revocations_of_file(f"role a\n{line}\n", "f")


def test_a_file_with_too_many_entries() -> None:
    lines = "role a\n" * FILE_ENTRIES_MAX
    assert revocations_of_file(lines, "f").count == 1
    with pytest.raises(InputError, match="f has more than 100,000 entries"):
        revocations_of_file(lines + "role a\n", "f")


@given(st.lists(st.text(st.characters(exclude_characters=",", categories=["L", "N"]), min_size=1)))
def test_every_name_that_is_written_is_revoked(names: list[str]) -> None:
    found = Revocations(names_of_setting(",".join(names)))
    assert all(revoked(Principal(name), "", found, NOW_S) for name in names)


@given(st.text(max_size=60))
def test_any_text_is_entries_or_a_problem(text: str) -> None:
    if not problem_of_setting(text):
        names_of_setting(text)
