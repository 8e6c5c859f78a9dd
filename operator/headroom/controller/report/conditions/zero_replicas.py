"""Messages of conditions while a service has no replica. Pure.

Where the decision is only advice, no request starts a replica: who scales the workload does.
"""

from __future__ import annotations

from headroom.controller.report.conditions.condition_result import TickResult

_STARTS = {
    "Auto": "no replica is needed; the first request starts one and is held until it is ready",
    "External": "spec.replicas is 0; until it is raised requests {fate}",
    "Recommend": "the workload is scaled to zero; until it is scaled up requests {fate}",
}


def waits(tick: TickResult) -> str:
    """Return the fate of requests meanwhile, and the event that starts a replica."""
    fate = "are held" if tick.route.can_activate else "fail"
    return _STARTS[tick.service.spec.scaling.mode].format(fate=fate)


def counts(tick: TickResult) -> str:
    """Return where requests are counted."""
    if tick.route.can_activate:
        return "while no replica runs, requests are counted at the activators"
    return "while no replica runs and no activator holds requests, none are counted"
