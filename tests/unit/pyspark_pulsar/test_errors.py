from __future__ import annotations

import pickle

from pyspark_pulsar.errors import AdminError, OptionsError, PulsarSourceError


def test_options_error_lists_every_problem_and_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(OptionsError(["first", "second"])))
    assert isinstance(error, PulsarSourceError)
    assert isinstance(error, ValueError)
    assert error.problems == ("first", "second")
    assert str(error) == "first; second"


def test_what_a_server_says_does_not_write_to_the_terminal() -> None:
    error = AdminError("answered 400: \x1b[2J\x9b\u202eno\nline 2\r")
    assert str(error) == "answered 400: \ufffd[2J\ufffd\ufffdno\nline 2\ufffd"
