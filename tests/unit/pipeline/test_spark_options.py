"""Settings of Spark: what is refused, and what follows from the machine."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.base.units import GIB, MIB
from headgate.pipeline.spark_options import (
    SparkOptions,
    check_no_connect,
    machine_settings,
    shuffle_partitions,
)


@pytest.mark.parametrize("memory", ["512m", "4g", "4G", "1t", "600000k", "4gb", "536870912"])
def test_spark_s_sizes_are_allowed(memory: str) -> None:
    assert SparkOptions(driver_memory=memory).driver_memory == memory


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cores": 0}, "--cores 0: 1 to 1,024 is allowed"),
        ({"cores": 1_025}, "--cores 1025: 1 to 1,024 is allowed"),
        ({"driver_memory": "300m"}, "--driver-memory 300m: 512m or more is allowed, such as 4g"),
        ({"driver_memory": "lots"}, "--driver-memory lots: 512m or more"),
        ({"driver_memory": ""}, "--driver-memory : 512m or more"),
        ({"conf": ("a=b",)}, "--spark-conf 'a=b': KEY=VALUE is allowed, such as spark.sql.shuff"),
        ({"conf": ("spark.a",)}, "--spark-conf 'spark.a': KEY=VALUE is allowed"),
        ({"conf": ("spark.a=",)}, "--spark-conf 'spark.a=': KEY=VALUE is allowed"),
        ({"conf": ("spark.driver.memory=2g",)}, "not for this command: --driver-memory sets it"),
        ({"conf": ("spark.sql.session.timeZone=CET",)}, "the tables have UTC"),
        ({"conf": ("spark.master=yarn",)}, "the variable MASTER sets it, or spark-submit"),
    ],
)
def test_what_spark_would_refuse_is_refused_before_it_starts(
    options: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        SparkOptions(**options)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_one_error_names_all_faults() -> None:
    with pytest.raises(InputError) as caught:
        SparkOptions(0, "1m", ("x", "spark.a=1"))
    assert [line.split()[0] for line in str(caught.value).splitlines()] == [
        "--cores", "--driver-memory", "--spark-conf",
    ]  # fmt: skip


def test_the_last_value_of_a_key_counts_and_may_have_an_equals_sign() -> None:
    options = SparkOptions(conf=("spark.a=1", "spark.b = -Da=b ", "spark.a=2"))
    assert options.settings() == {"spark.a": "2", "spark.b": "-Da=b"}


def test_spark_submit_sets_cores_and_memory_itself() -> None:
    SparkOptions(conf=("spark.a=1",)).check_submitted()
    with pytest.raises(InputError, match="--cores is for this machine; spark-submit has"):
        SparkOptions(cores=2).check_submitted()
    with pytest.raises(InputError, match="--driver-memory comes too late here"):
        SparkOptions(driver_memory="4g").check_submitted()


@pytest.mark.parametrize(
    ("cores", "memory", "partitions", "heap"),
    [
        (1, GIB, "4", "1024m"),
        (2, 8 * GIB, "4", "2048m"),
        (16, 64 * GIB, "32", "16384m"),
        (64, 512 * GIB, "128", "16384m"),
    ],
)
def test_settings_follow_the_machine(cores: int, memory: int, partitions: str, heap: str) -> None:
    assert machine_settings(cores, memory) == {
        "spark.sql.shuffle.partitions": partitions,
        "spark.driver.memory": heap,
    }


def test_partitions_follow_the_input() -> None:
    assert [shuffle_partitions(2, size * MIB) for size in (0, 64, 65, 1_600, 10**6)] == [
        4, 4, 5, 100, 2_000,
    ]  # fmt: skip
    assert shuffle_partitions(2_000, 0) == 4_000


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"SPARK_REMOTE": "sc://h:15002/;token=secret"}, "SPARK_REMOTE=sc://h:15002/ asks for"),
        ({"SPARK_REMOTE": "local"}, "SPARK_REMOTE=local asks for Spark Connect, which cannot"),
        ({"MASTER": "sc://h"}, "MASTER=sc://h asks for Spark Connect"),
        ({"SPARK_API_MODE": "Connect"}, "SPARK_API_MODE=Connect asks for Spark Connect"),
    ],
)
def test_spark_connect_is_refused(environment: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        check_no_connect(environment)
    assert str(caught.value).startswith(said)
    assert "secret" not in str(caught.value)
    for key in ("spark.remote=sc://h", "spark.api.mode=connect"):
        with pytest.raises(InputError, match=r"is not for this command: .*spark-submit"):
            SparkOptions(conf=(key,))


def test_without_spark_connect_nothing_is_refused() -> None:
    check_no_connect({})
    check_no_connect({"MASTER": "yarn", "SPARK_API_MODE": "classic", "SPARK_REMOTE": ""})
