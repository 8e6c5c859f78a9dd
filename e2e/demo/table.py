"""The rows of the live view: the last snapshot and the generator's last seconds."""

from __future__ import annotations

from demo.checks import percent, seconds_text
from demo.layout import BAD, UNKNOWN, Row, replicas_row, style
from demo.recording import Recording, Snapshot, arrivals_rps, recent, utilization
from demo.views import ServiceView
from load.outcomes import Outcome
from load.statistics import merged


def rows(snapshot: Snapshot, recording: Recording) -> list[Row]:
    """Everything that the live table shows."""
    service, lately = snapshot.service, recent(recording.seconds)
    arrivals = arrivals_rps(recording.seconds)
    used, share = utilization(arrivals, service), service.percentile / 100
    tail_s = lately.quantile_s(share)
    depth = service.queue_depth or (service.cost.max_batch if service.cost else None)
    lost = merged(second.tally for second in recording.seconds).outcomes[Outcome.LOST]
    return [
        Row(
            name="arrivals",
            now=UNKNOWN if arrivals is None else f"{arrivals:.1f} /s",
            bound=_demand(service),
        ),
        Row(
            name="waiting",
            now=UNKNOWN if snapshot.waiting is None else str(snapshot.waiting),
            bound=f"at most {depth} per replica" if depth else "",
            style=style(snapshot.waiting, depth and depth * max(1, service.ready)),
        ),
        Row(
            name=f"p{service.percentile}, last 10 s",
            now=UNKNOWN if tail_s is None else seconds_text(tail_s),
            bound=f"target {service.target_s:g} s",
            style=style(tail_s, service.target_s),
        ),
        Row(
            name="utilization",
            now=UNKNOWN if used is None else percent(used),
            bound=f"ceiling {percent(service.utilization_ceiling)}",
            style=style(used, service.utilization_ceiling),
        ),
        replicas_row(snapshot),
        Row(name="lost requests", now=str(lost), style=BAD if lost else ""),
    ]


def _demand(service: ServiceView) -> str:
    """Return the demand where arrivals do not show it."""
    demand = service.demand
    return f"demand {demand.rate}" if demand is not None and service.demand_is_bound else ""
