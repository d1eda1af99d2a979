"""What goes wrong between an agent and a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Faults:
    """Faults of a cluster; none by default. A test may change them while time passes."""

    gone: set[str] = field(default_factory=set)
    """Brokers that do not answer."""
    failing_call: int | None = None
    """The call, counted from 0, that is answered with status 500."""
    status: int | None = None
    """A status that each call gets, such as 429."""
    is_looping: bool = False
    """Whether each broker sends each request about a topic on to the next one."""
    is_page: bool = False
    """Whether a proxy's web page answers."""
    refused: Callable[[str, str], int | None] = lambda _path, _token: None
    """The status with which a path is refused to what the header ``Authorization`` says."""
    refusal: str = "This operation requires super-user access"
    """The reason of such an answer."""
    spoil: Callable[[bytes], bytes] = lambda body: body
    """Changes the body of each answer."""
    took_s: float = 0.005
    """How long an answer takes."""
    timeout_s: float = 3.0
    """How long a broker that is gone keeps a caller waiting."""
