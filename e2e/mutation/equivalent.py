"""Mutations without any effect on behaviour, each with its reason. Pure.

They count as not noticed without running tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Equivalent(NamedTuple):
    """A mutation that changes nothing observable."""

    module: str
    """The end of the module's path."""
    sound: str
    """The original text, once in the module; spaces are ignored."""
    broken: Sequence[str]
    """Equivalent replacements."""
    reason: str


RESOLUTION = "resolution of a numerical method: the result changes by less than the model's error"
EQUIVALENT: Sequence[Equivalent] = (
    Equivalent(
        "scaling/latency/many_servers.py", "STEPS = 64", ("STEPS = 63", "STEPS = 65"), RESOLUTION
    ),
    Equivalent(
        "scaling/latency/many_servers.py",
        "HALVINGS = 22",
        ("HALVINGS = 21", "HALVINGS = 23"),
        RESOLUTION,
    ),
    Equivalent(
        "scaling/latency/slot_pool.py", "POOLS = (32,", ("POOLS = (31,", "POOLS = (33,"), RESOLUTION
    ),
    Equivalent(
        "scaling/latency/many_servers.py",
        "DEEPEST = 9.0",
        ("DEEPEST = 8.0", "DEEPEST = 10.0"),
        RESOLUTION,
    ),
    Equivalent(
        "scaling/latency/many_servers.py",
        "DEEPEST + 1)",
        ("DEEPEST + 0)", "DEEPEST + 2)"),
        RESOLUTION,
    ),
    Equivalent(
        "scaling/latency/sticky_connections.py",
        "range(connections, 0, -1)",
        ("range(connections, 1, -1)",),
        "one connection is the answer wherever no more are",
    ),
    Equivalent(
        "scaling/cost/change_detection.py",
        "or expected_s <= 0:",
        ("or expected_s <= -1:", "or expected_s < 0:", "or expected_s == 0:"),
        "of a cost of nothing every execution is a hang, and none is counted",
    ),
    Equivalent(
        "scaling/limits/scale_up.py",
        "max(stable or 0, limit_input",
        ("max(stable or -1, limit_input",),
        "what the ceiling needs is never below 0",
    ),
    Equivalent(
        "scaling/cost/cost_learning.py",
        "zip(*bins.values(), strict=True)",
        ("zip(*bins.values(), strict=False)",),
        "every bin holds as many sums as any other",
    ),
    Equivalent(
        "scaling/windows/signals.py",
        "return 0.0 if silent_s",
        ("return -1.0 if silent_s",),
        "the largest age counts, and that of a scraped pod is above 0",
    ),
)


def reason(path: str, sound: str, broken: str) -> str:
    """Return why a mutated text is equivalent to the original; empty if it is not."""
    plain, found = _without_spaces(sound), _without_spaces(broken)
    for one in EQUIVALENT:
        stands = _without_spaces(one.sound)
        may = [plain.replace(stands, _without_spaces(other)) for other in one.broken]
        if path.endswith(one.module) and stands in plain and found in may:
            return one.reason
    return ""


def _without_spaces(text: str) -> str:
    return "".join(text.split())
