"""The checks of the demo of generation: measured values against required ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from demo.checks import SENT_LATE, cluster, percent, scaling
from demo.plan import GPUS
from demo.requirements import Check
from demo_generation import plan
from demo_generation.recording import TokenRecording, bindings, promises
from demo_generation.table import tail_text
from headroom.scaling.values.tokens import Target
from load.outcomes import Outcome
from load.token_messages import Answer, Concluded, first_token_s, output_token_s

Tail = Callable[[Sequence[Answer], float], float | None]


def evaluate(run: TokenRecording) -> list[Check]:
    """Hold a run to its requirements. Where something was never measured, its check fails."""
    if run.concluded is None or not run.snapshots:
        return [Check(name="the load wrote a summary", measured="none", required="one", held=False)]
    return [
        *scaling(run, full_length=True),
        *_answers(run, run.concluded),
        *_promises(run),
        _named(run),
        *cluster(run, GPUS),
    ]


def _answers(run: TokenRecording, summary: Concluded) -> Iterator[Check]:
    planned = run.began.requests if run.began else 0
    right = summary.outcomes.get(Outcome.OK.value, 0)
    others = {name: count for name, count in summary.outcomes.items() if name != Outcome.OK}
    yield Check(
        name="every request got as many tokens as it asked for",
        measured=f"{right} of {planned}"
        + "".join(f", {count} {name}" for name, count in others.items()),
        required="all",
        held=right == summary.requests == planned == len(run.answers) > 0,
    )
    yield Check(
        name="the load was sent on time",
        measured=f"99 % sent within {1000 * summary.late_p99_s:.0f} ms",
        required=f"within {1000 * plan.LATEST_SEND_S:.0f} ms",
        held=summary.late_p99_s <= plan.LATEST_SEND_S,
        otherwise=SENT_LATE,
    )


def _promises(run: TokenRecording) -> Iterator[Check]:
    targets, answers = run.snapshots[-1].service.tokens, list(run.answers.values())
    kept = sum(one.keeps(promises(targets)) for one in answers) / max(1, len(answers))
    yield Check(
        name="share of requests that kept both promises",
        measured=percent(kept),
        required=f"at least {percent(plan.LEAST_ATTAINMENT)}",
        held=kept >= plan.LEAST_ATTAINMENT,
    )
    last = run.due_since(run.duration_s - plan.LAST_STRETCH_S)
    yield _tail("time to first token", targets.first_token, first_token_s, last)
    yield _tail("time per output token", targets.output_token, output_token_s, last)


def _tail(name: str, target: Target | None, measure: Tail, last: Sequence[Answer]) -> Check:
    assert target is not None, "the sample has both promises"
    measured_s = measure(last, target.percentile)
    return Check(
        name=f"p{100 * target.percentile:.0f} {name} of the last {plan.LAST_STRETCH_S:g} s",
        measured=tail_text(measured_s),
        required=f"at most {tail_text(target.seconds)}",
        held=measured_s is not None and measured_s <= target.seconds,
    )


def _named(run: TokenRecording) -> Check:
    """Check that the binding resource is known when the load ends."""
    found = bindings(run.snapshots)
    generation = run.snapshots[-1].service.generation
    known = generation is not None and generation.sized_by == "Model" and bool(found)
    return Check(
        name="the status names what bounds a replica, by the learned cost",
        measured=", then ".join(name for _, name in found) or "nothing",
        required="a bound, sizedBy: Model",
        held=known,
    )
