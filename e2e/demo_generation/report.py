"""The figures of a run that generates, by name."""

from __future__ import annotations

from collections.abc import Iterator

from demo.checks import percent
from demo.report import cost
from demo_generation.recording import TokenRecording, bindings, promises
from demo_generation.table import tail_text
from load.token_messages import first_token_s, output_token_s


def figures(run: TokenRecording) -> Iterator[tuple[str, str]]:
    """Each figure of the run by name."""
    assert run.concluded is not None
    summary, targets = run.concluded, run.snapshots[-1].service.tokens
    answers = list(run.answers.values())
    kept = sum(one.keeps(promises(targets)) for one in answers)
    counted = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items())
    yield "requests", f"{summary.requests}: {counted}"
    yield "both promises kept", f"{percent(kept / max(1, len(answers)))} of all requests"
    for name, measure in (
        ("time to first token", first_token_s),
        ("time per output token", output_token_s),
    ):
        yield (
            name,
            f"p50 {tail_text(measure(answers, 0.5))}, p95 {tail_text(measure(answers, 0.95))}",
        )
    mean = summary.output_tokens / summary.seconds if summary.seconds else 0.0
    snapshots = [
        snapshot.service.generation for snapshot in run.during() if snapshot.service.generation
    ]
    peak = max((one.generated_tokens_per_second or 0.0 for one in snapshots), default=0.0)
    yield "tokens per second", f"{mean:.0f} mean, {peak:.0f} at the peak"
    yield (
        "KV memory",
        f"at most {percent(max((one.memory_share or 0.0 for one in snapshots), default=None))}",
    )
    yield "what binds", ", then ".join(name for _, name in bindings(run.snapshots)) or "unknown"
    capacity = next((one.capacity_per_replica for one in reversed(snapshots)), None)
    yield "capacity of a replica", "unknown" if capacity is None else f"{capacity:.2f} requests/s"
    yield from cost(run)
