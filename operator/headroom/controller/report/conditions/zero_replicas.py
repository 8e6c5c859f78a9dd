"""Messages of conditions while a service has no replica. Pure.

Where the decision is only advice, no request starts a replica: who scales the workload does.
"""

from __future__ import annotations

from headroom.controller.report.conditions.condition_result import TickResult
from headroom.scaling.post_rules import WAITS_FOR_ACTIVATOR_S

_STARTS = {
    "Auto": "no replica is needed; the first request starts one and is held until it is ready",
    "External": "spec.replicas is 0; until it is raised requests {fate}",
    "Recommend": "the workload is scaled to zero; until it is scaled up requests {fate}",
}
_FAIL = "no replica runs, and no activator holds requests: they fail"


def waits(tick: TickResult) -> str:
    """Return the fate of requests meanwhile, and the event that starts a replica."""
    mode, can_activate = tick.service.spec.scaling.mode, tick.route.can_activate
    if mode == "Auto" and not can_activate:
        return f"{_FAIL}; after {WAITS_FOR_ACTIVATOR_S:g} s without one, a replica is started"
    return _STARTS[mode].format(fate="are held" if can_activate else "fail")


def held(tick: TickResult) -> str:
    """Return the number of requests that wait for the first replica, or that none can."""
    number = tick.route.held
    if not number and not tick.route.can_activate:
        return "no activator holds requests"
    return f"{number} {'request is' if number == 1 else 'requests are'} held"


def counts(tick: TickResult) -> str:
    """Return where requests are counted."""
    if tick.route.can_activate:
        return "while no replica runs, requests are counted at the activators"
    return "while no replica runs and no activator holds requests, none are counted"
