"""The checks of the demo: measured values against required ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

from demo.changes import Change, changes
from demo.recording import Recording, Run, decisions, longest_unanswered_s
from demo.requirements import Check, Requirements
from load.messages import Summary
from load.outcomes import Outcome
from load.statistics import Tally, merged

SENT_LATE = (
    "The load was sent late: this machine, or the node, was too busy, so the other figures say "
    "little about the operator. Run it again while nothing else computes."
)


def evaluate(recording: Recording, required: Requirements) -> list[Check]:
    """Hold a run to its requirements. Where something was never measured, its check fails."""
    summary = recording.summary
    if summary is None or not recording.snapshots:
        return [
            Check(
                name="the replay wrote a summary",
                measured="none was read",
                required="one",
                held=False,
            )
        ]
    return [
        *scaling(recording, required.full_length),
        *_requests(recording, summary, required),
        *_promise(recording, summary, required),
        *cluster(recording, required.gpus),
    ]


def scaling(run: Run, full_length: bool) -> Iterator[Check]:
    """Hold the changes of replicas to decisions, up and, in a whole run, down."""
    moved = changes(run.snapshots)
    up, down = ([c for c in moved if (c.after > c.before) is way] for way in (True, False))
    yield _moves("the operator scaled up", up)
    if full_length:
        yield _moves("the operator scaled down", down)
    foreign = [c for c in moved if not c.by_operator or c.decision is None]
    yield Check(
        name="every change of replicas was a decision of the operator",
        measured=f"{len(moved) - len(foreign)} of {len(moved)}"
        + "".join(f", not {_step(change)}" for change in foreign),
        required="all, written by headroom-scaler, with a decision in the status",
        held=not foreign,
    )


def _moves(name: str, found: list[Change]) -> Check:
    return Check(
        name=name,
        measured=", ".join(_step(change) for change in found) or "never",
        required="at least once",
        held=any(change.by_operator and change.decision is not None for change in found),
    )


def _step(change: Change) -> str:
    return f"{change.before} → {change.after}"


def _requests(recording: Recording, summary: Summary, required: Requirements) -> Iterator[Check]:
    outcomes, due = summary.tally.outcomes, summary.requests
    planned = recording.started.requests if recording.started else 0
    yield Check(
        name="every request was sent and has an outcome",
        measured=f"{summary.tally.requests - outcomes[Outcome.UNSENT]} of {planned}",
        required="all",
        held=summary.tally.requests == due == planned and not outcomes[Outcome.UNSENT],
    )
    silent = outcomes[Outcome.LOST] + outcomes[Outcome.UNREACHABLE]
    yield Check(
        name="no accepted request was lost",
        measured=f"{outcomes[Outcome.LOST]} lost, {outcomes[Outcome.UNREACHABLE]} unreachable",
        required="0",
        held=silent == 0,
    )
    yield Check(
        name="every answer was correct",
        measured=f"{outcomes[Outcome.OK]} right, {outcomes[Outcome.WRONG]} wrong",
        required="0 wrong, and some right",
        held=outcomes[Outcome.WRONG] == 0 and outcomes[Outcome.OK] > 0,
    )
    yield Check(
        name="the generator sent on time",
        measured=f"99 % sent within {1000 * summary.late_p99_s:.0f} ms",
        required=f"within {1000 * required.latest_send_s:.0f} ms",
        held=summary.late_p99_s <= required.latest_send_s,
        otherwise=SENT_LATE,
    )


def _promise(recording: Recording, summary: Summary, required: Requirements) -> Iterator[Check]:
    last = recording.snapshots[-1].service
    attainment = summary.tally.attainment
    yield Check(
        name="share of requests within the target",
        measured=percent(attainment),
        required=f"at least {percent(required.least_attainment)}",
        held=attainment is not None and attainment >= required.least_attainment,
    )
    if required.full_length:
        stretch = last_stretch(recording, required.last_stretch_s)
        share = last.percentile / 100
        yield Check(
            name=f"p{last.percentile} of the last {required.last_stretch_s:g} s, fewer replicas",
            measured=seconds_text(stretch.quantile_s(share)),
            required=f"at most {last.target_s:g} s",
            held=stretch.requests > 0 and stretch.holds(share),
        )
        yield Check(
            name="SLOMet is True at the end",
            measured=f"SLOMet={last.conditions.get('SLOMet', 'absent')}",
            required="SLOMet=True",
            held=last.is_true("SLOMet"),
        )
    yield _ceiling(recording)
    unanswered_s = longest_unanswered_s(recording)
    yield Check(
        name="longest time above the ceiling without a starting replica",
        measured=f"{unanswered_s:.0f} s",
        required=f"at most {required.longest_unanswered_s:g} s, unless at maxReplicas",
        held=unanswered_s <= required.longest_unanswered_s,
    )


def _ceiling(recording: Recording) -> Check:
    """Every decision that moved must project utilization below the ceiling, unless at its bound."""
    bound = recording.snapshots[-1].service
    projected = [
        (decision.projected.utilization if decision.projected else None)
        for decision in decisions(recording.snapshots)
        if decision.replicas < bound.max_replicas
    ]
    known = [value for value in projected if value is not None]
    return Check(
        name="utilization after each decision",
        measured=f"at most {percent(max(known))}" if known else "none was seen",
        required=f"below {percent(bound.utilization_ceiling)}, unless at maxReplicas",
        held=bool(known)
        and len(known) == len(projected)
        and max(known) < bound.utilization_ceiling,
    )


def cluster(run: Run, gpus: int) -> Iterator[Check]:
    """Hold the cluster to its GPUs, and replicas and operator to staying whole."""
    held = max(snapshot.gpus_held for snapshot in run.snapshots)
    homeless = max(snapshot.service.unschedulable for snapshot in run.snapshots)
    yield Check(
        name="GPUs in use at once",
        measured=f"at most {held}, {homeless} unschedulable pods",
        required=f"at most {gpus}, 0 unschedulable",
        held=held <= gpus and homeless == 0,
    )
    broken = max(snapshot.service.broken for snapshot in run.snapshots)
    yield Check(
        name="no replica broke", measured=f"{broken} broken", required="0", held=broken == 0
    )
    yield Check(
        name="the operator did not restart",
        measured=f"{run.operator_restarts} restarts",
        required="0",
        held=run.operator_restarts == 0,
    )


def last_stretch(recording: Recording, of_s: float) -> Tally:
    """All requests that were due in the last seconds of the replay."""
    duration_s = recording.started.duration_s if recording.started else 0.0
    return merged(
        window.tally for window in recording.windows if window.start_s >= duration_s - of_s
    )


def percent(share: float | None) -> str:
    """A share for people."""
    return "unknown" if share is None else f"{100 * share:.1f} %"


def seconds_text(value_s: float | None) -> str:
    """A latency for people; +Inf where misses reach into the percentile."""
    if value_s is None:
        return "unknown"
    return "missed" if math.isinf(value_s) else f"{value_s:.2f} s"
