"""The demo of generation: steps of load on the sample, seen by tokens."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, RenderableType

from cluster import Cluster
from demo import layout, load_job, panels, report
from demo.plan import LOAD_IMAGE, LOAD_JOB
from demo.reader import Reader
from demo.recording import Snapshot
from demo.scene import Scene, Show
from demo_generation import checks, figure, plan, table
from demo_generation.recording import TokenRecording, promises
from demo_generation.report import figures
from load.token_messages import write


class Writer(Show):
    """Sends the steps of load."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.run: TokenRecording = TokenRecording()

    def title(self, name: str) -> str:
        """Name the load."""
        lengths = plan.LENGTHS
        return (
            f"{name}: streams of {lengths.output_tokens} tokens after prompts of "
            f"{lengths.prompt_tokens}, Poisson arrivals in steps ({plan.STEPS})"
        )

    def start_load(self, target: Cluster, reading: Reader, name: str) -> None:
        """Put the load into the cluster."""
        held_to = promises(reading.service().tokens)
        job = load_job.job(
            LOAD_JOB,
            image=LOAD_IMAGE,
            command=plan.COMMAND,
            arguments={
                "url": reading.address(),
                "model": name,
                "steps": plan.STEPS,
                "prompt-tokens": plan.LENGTHS.prompt_tokens,
                "output-tokens": plan.LENGTHS.output_tokens,
                "vocabulary": plan.LENGTHS.vocabulary,
                "seed": plan.SEED,
                "first-token": held_to.first_token_s,
                "output-token": held_to.output_token_s,
            },
            seconds=self.scene.duration_s,
        )
        load_job.put(target, self.scene.namespace, job)

    def view(self, snapshot: Snapshot, title: str) -> RenderableType:
        """Lay out the last snapshot and the last answers."""
        return layout.view(table.rows(snapshot, self.run), snapshot, self.run, title)

    def line(self, snapshot: Snapshot) -> str:
        """Say the same in one line."""
        return layout.line(table.rows(snapshot, self.run), snapshot, self.run)

    def conclude(self, name: str, folder: Path, console: Console) -> bool:
        """Print and write report, answers and picture; return whether every check held."""
        run = self.run
        found = checks.evaluate(run)
        rows = list(figures(run)) if run.concluded and run.snapshots else []
        report.write(report.laid_out(rows, run, found), folder, console)
        lines = (f"{write(one)}\n" for _, one in sorted(run.answers.items()))
        (folder / "load.jsonl").write_text("".join(lines))
        if run.began and run.during():
            panels.save(figure.drawn(run, name), folder / "run.png", console)
        return all(check.held for check in found)
