from __future__ import annotations

import pickle

from pyspark_pulsar.errors import OptionsError, PulsarSourceError


def test_options_error_lists_every_problem_and_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(OptionsError(["first", "second"])))
    assert isinstance(error, PulsarSourceError)
    assert isinstance(error, ValueError)
    assert error.problems == ("first", "second")
    assert str(error) == "first; second"
