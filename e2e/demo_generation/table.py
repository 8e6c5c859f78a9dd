"""The rows of the live view: tokens by the last snapshot, and the answers of the last seconds."""

from __future__ import annotations

from demo.checks import percent, seconds_text
from demo.layout import BAD, UNKNOWN, Row, replicas_row, style
from demo.recording import Snapshot
from demo_generation import plan
from demo_generation.recording import TokenRecording
from headroom.scaling.values.tokens import Target
from load.outcomes import Outcome
from load.token_messages import first_token_s, output_token_s

MILLISECONDS = 1000.0


def rows(snapshot: Snapshot, run: TokenRecording) -> list[Row]:
    """Everything that the live table shows."""
    service = snapshot.service
    generation = service.generation
    lately = (
        run.ended_since(run.since_start_s(snapshot.time_s) - plan.RECENT_S) if run.began else []
    )
    first, output = service.tokens.first_token, service.tokens.output_token
    bad = sum(one.outcome is not Outcome.OK for one in run.answers.values())
    return [
        Row(
            name="arrivals",
            now=UNKNOWN if service.demand is None else service.demand.rate,
            bound=_capacity(snapshot),
        ),
        _promise("time to first token", first, first_token_s(lately, _share(first))),
        _promise("time per output token", output, output_token_s(lately, _share(output))),
        Row(
            name="tokens per second",
            now=_number(generation.generated_tokens_per_second if generation else None),
            bound=f"prompts {_number(generation.prompt_tokens_per_second if generation else None)}",
        ),
        Row(
            name="KV memory",
            now=percent(generation.memory_share if generation else None),
            bound="of the replica with the largest",
        ),
        Row(
            name="engine time",
            now=percent(generation.engine_share if generation else None),
            bound=f"ceiling {percent(service.utilization_ceiling)}",
            style=style(
                generation.engine_share if generation else None, service.utilization_ceiling
            ),
        ),
        Row(name="what binds", now=(generation and generation.binding) or UNKNOWN),
        replicas_row(snapshot),
        Row(name="requests without an answer", now=str(bad), style=BAD if bad else ""),
    ]


def tail_text(value_s: float | None) -> str:
    """Return a time of tokens for people."""
    if value_s is None:
        return UNKNOWN
    return f"{MILLISECONDS * value_s:.0f} ms" if value_s < 1.0 else seconds_text(value_s)


def _promise(name: str, target: Target | None, measured_s: float | None) -> Row:
    return Row(
        name=f"{name}, p{100 * _share(target):.0f} of 10 s",
        now=tail_text(measured_s),
        bound=f"target {tail_text(target.seconds)}" if target else "",
        style=style(measured_s, target.seconds if target else None),
    )


def _share(target: Target | None) -> float:
    return target.percentile if target else 0.95


def _capacity(snapshot: Snapshot) -> str:
    generation = snapshot.service.generation
    if generation is None or generation.capacity_per_replica is None:
        return ""
    return f"{generation.capacity_per_replica:.2f} /s per replica"


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f} /s"
