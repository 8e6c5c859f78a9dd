"""`generation_study fidelity`: the plant against the recorded vLLM; --record plays it again."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from cluster.progress import OnConsole
from generation_study.fidelity import data
from generation_study.fidelity.comparing import PROMISED, Compared, compare


def main(console: Console, *, record: bool) -> int:
    """Print each load's errors; 0 if all are within the goal."""
    if record:
        from generation_study.fidelity.recording import record as play  # noqa: PLC0415
        from slow.vllm_environment import python_with_vllm  # noqa: PLC0415

        play(python_with_vllm(), data.RECORDED, OnConsole(console))
    recorded = data.read()
    found = compare(recorded)
    console.print(table(found))
    console.print(f"recorded {recorded.about['recorded']}, {recorded.about['versions']}")
    held = sum(one.recorded.holds for one in found)
    alike = sum(one.undisturbed.holds for one in found)
    console.print(
        f"within {PROMISED:.0%}: {held} of {len(found)} loads as recorded, {alike} with vLLM's "
        "iterations at their calibrated times"
    )
    return 0 if held == len(found) else 1


def table(found: Sequence[Compared]) -> Table:
    """Lay out the loads."""
    shown = Table(
        title="The plant against vLLM: 95th percentiles in ms, errors as recorded and undisturbed",
        title_justify="left",
        box=None,
    )
    for heading in (*("load", "preempted", "noise", "first token", "", "", "per token", "", ""),):
        shown.add_column(heading, justify="left" if heading == "load" else "right", no_wrap=True)
    for one in found:
        shown.add_row(
            one.name,
            str(one.preempted),
            f"{one.noise:.2f}",
            _pair(one.recorded.first_token_s),
            f"{one.recorded.first_token_error:+.1%}",
            f"{one.undisturbed.first_token_error:+.1%}",
            _pair(one.recorded.output_token_s),
            f"{one.recorded.output_token_error:+.1%}",
            f"{one.undisturbed.output_token_error:+.1%}",
        )
    return shown


def _pair(seconds: tuple[float, float]) -> str:
    return f"{1000 * seconds[0]:.1f} → {1000 * seconds[1]:.1f}"
