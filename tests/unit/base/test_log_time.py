"""Law 4.5: the time of the log passes as time does, whatever is done to the wall clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.log_time import LATE_NS, STEP_NS, Continued, LogTime, Mark, published_in_log_ms
from headgate.base.units import NS_PER_MS, NS_PER_S

WALL_NS = 1_750_000_000 * NS_PER_S
HOUR_NS = 3_600 * NS_PER_S
YEARS_NS = 10 * 365 * 24 * HOUR_NS
UP_NS = 100 * HOUR_NS
"""How long the machine is up, where that is not what a test is about."""


class Machine:
    """One machine's clocks, and one log on it. Time is its running time and that in which it was
    off; the wall clock is what people make of it."""

    def __init__(self) -> None:
        self.passed_ns = 0
        self.step_ns = 0
        self.boot = 1
        self.booted_ns = -UP_NS
        self.mark: Mark | None = None
        self.newest_ms = 0
        self.begin()
        self.zero_ns = self.log_ns

    @property
    def running_ns(self) -> int:
        return self.passed_ns - self.booted_ns

    @property
    def wall_ns(self) -> int:
        return WALL_NS + self.passed_ns + self.step_ns

    def begin(self) -> None:
        self.time = LogTime(
            self.mark, self.newest_ms, f"boot {self.boot}", self.running_ns, self.wall_ns
        )
        self.keep()

    def keep(self) -> None:
        self.mark = self.time.mark(self.running_ns)

    def look(self) -> int:
        return self.time.look(self.running_ns, self.wall_ns)

    def store(self) -> None:
        """A message comes."""
        self.newest_ms = max(self.newest_ms, self.log_ns // NS_PER_MS)

    def reboot(self, up_ns: int = UP_NS) -> None:
        """The machine starts anew, and the broker when it is up for so long."""
        self.boot += 1
        self.booted_ns = self.passed_ns - up_ns
        self.begin()

    @property
    def log_ns(self) -> int:
        return self.wall_ns - self.time.skew_ms * NS_PER_MS

    @property
    def error_ns(self) -> int:
        """How much more time passed by the log than did."""
        return self.log_ns - self.zero_ns - self.passed_ns


def test_it_begins_as_the_wall_clock_is() -> None:
    machine = Machine()
    assert (machine.log_ns, machine.time.skew_ms) == (WALL_NS, 0)
    assert machine.time.continued is Continued.ADOPTED
    assert machine.look() == 0


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS, YEARS_NS, -YEARS_NS, STEP_NS + NS_PER_MS])
def test_a_step_is_seen_once_and_moves_nothing(step_ns: int) -> None:
    machine = Machine()
    machine.step_ns += step_ns
    machine.passed_ns += NS_PER_S
    assert machine.look() == step_ns
    assert machine.look() == 0
    assert machine.error_ns == 0
    assert machine.time.skew_ms == step_ns // NS_PER_MS
    machine.step_ns = 0
    assert machine.look() == -step_ns
    assert (machine.error_ns, machine.time.skew_ms) == (0, 0)


def test_what_a_clock_is_kept_right_by_is_followed() -> None:
    machine = Machine()
    for _ in range(10):
        machine.step_ns += STEP_NS
        assert machine.look() == 0
    assert (machine.time.skew_ms, machine.error_ns) == (0, 10 * STEP_NS)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("wait", "step", "restart")),
            st.integers(-YEARS_NS // NS_PER_MS, YEARS_NS // NS_PER_MS),
        ),
        max_size=30,
    )
)
def test_while_the_machine_is_up_it_is_right_to_the_millisecond(
    acts: list[tuple[str, int]],
) -> None:
    """Also over restarts of the broker, with the clock set while it is down."""
    machine = Machine()
    for what, amount_ms in acts:
        if what == "wait":
            machine.passed_ns += abs(amount_ms) * NS_PER_MS
        elif what == "step":
            machine.step_ns += amount_ms * NS_PER_MS
            if amount_ms % 2:
                machine.look()
                machine.keep()
        else:
            machine.store()
            machine.begin()
            assert machine.time.continued is Continued.RUNNING
        machine.look()
        steps = 1 + sum(1 for act, _ in acts if act == "step")
        assert abs(machine.error_ns) <= steps * STEP_NS
        machine.store()


def test_the_time_in_which_the_machine_was_off_counts() -> None:
    machine = Machine()
    machine.step_ns = YEARS_NS
    machine.look()
    machine.keep()
    machine.passed_ns += HOUR_NS
    machine.reboot()
    assert machine.time.continued is Continued.WALL
    assert (machine.error_ns, machine.time.down_ns) == (0, HOUR_NS)


def test_a_clock_that_was_put_right_while_the_machine_was_off() -> None:
    machine = Machine()
    machine.step_ns = YEARS_NS
    machine.look()
    machine.store()
    machine.keep()
    machine.passed_ns += HOUR_NS
    machine.step_ns = 0
    machine.reboot()
    assert (machine.error_ns, machine.time.skew_ms) == (0, 0)


@pytest.mark.parametrize("skew_ns", [0, YEARS_NS, -YEARS_NS, HOUR_NS])
def test_a_clock_that_goes_back_while_the_machine_is_off_takes_nothing_back(skew_ns: int) -> None:
    """Nor does it jump to another time that is far away."""
    machine = Machine()
    machine.step_ns = skew_ns
    machine.look()
    machine.keep()
    machine.passed_ns += 60 * NS_PER_S
    machine.store()
    machine.step_ns -= 120 * NS_PER_S
    machine.reboot()
    assert machine.time.continued is Continued.SET_BACK
    assert machine.error_ns == 0
    machine.passed_ns += HOUR_NS
    machine.begin()
    assert machine.error_ns == 0, "and its age does not begin anew"


def test_no_start_is_before_what_the_log_holds() -> None:
    newest_ms = (WALL_NS + YEARS_NS) // NS_PER_MS
    time = LogTime(None, newest_ms, "", UP_NS, WALL_NS)
    assert time.skew_ms == -YEARS_NS // NS_PER_MS


def test_without_the_name_of_a_boot_the_wall_clock_decides() -> None:
    mark = Mark("", UP_NS, WALL_NS, 0)
    time = LogTime(mark, 0, "", UP_NS + NS_PER_S, WALL_NS + HOUR_NS)
    assert (time.continued, time.down_ns) == (Continued.WALL, HOUR_NS)


def test_a_running_time_that_went_back_is_another_machines() -> None:
    mark = Mark("a", UP_NS, WALL_NS, 0)
    time = LogTime(mark, 0, "a", UP_NS - 1, WALL_NS + HOUR_NS)
    assert time.continued is Continued.WALL


@pytest.mark.parametrize("boots_in", [0, WALL_NS - HOUR_NS, WALL_NS])
def test_a_machine_that_learns_late_what_time_it_is(boots_in: int) -> None:
    """It has no clock of its own: 1970, or when it was last on, until somebody tells."""
    machine = Machine()
    machine.store()
    machine.passed_ns += 8 * HOUR_NS
    machine.step_ns = boots_in - WALL_NS - machine.passed_ns
    machine.reboot(up_ns=30 * NS_PER_S)
    assert machine.error_ns == -8 * HOUR_NS
    machine.passed_ns += NS_PER_S
    machine.store()
    machine.step_ns = 0
    assert machine.look() > 0
    assert (machine.error_ns, machine.time.skew_ms) == (0, 0)
    machine.step_ns = -HOUR_NS
    machine.look()
    assert machine.error_ns == 0


def test_later_a_step_is_a_step() -> None:
    machine = Machine()
    machine.passed_ns += HOUR_NS
    machine.reboot(up_ns=NS_PER_S)
    machine.passed_ns += LATE_NS
    machine.step_ns = HOUR_NS
    machine.look()
    assert machine.error_ns == 0


@pytest.mark.parametrize(
    ("publish_ms", "skew_ms", "log_publish_ms"),
    [
        (0, 500, 0),
        (900, 10_000, 900),
        (10_900, 10_000, 900),
        (900, -500, 900),
        (450, -500, 950),
        (99_000, 500, 1_000),
    ],
)
def test_a_publish_time_is_that_of_the_likelier_clock(
    publish_ms: int, skew_ms: int, log_publish_ms: int
) -> None:
    assert published_in_log_ms(publish_ms, 1_000, skew_ms) == log_publish_ms
