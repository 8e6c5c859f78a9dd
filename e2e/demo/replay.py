"""The demo of requests: a recorded workload, replayed on a service that batches."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, RenderableType

from cluster import Cluster
from demo import checks, figure, layout, load_job, panels, plan, report, requirements, table
from demo.plan import Plan
from demo.reader import Reader
from demo.recording import Recording, Snapshot
from demo.scene import Show
from load import arrivals, traces
from load.messages import Message, write


class Replay(Show):
    """Replays a window of the recording."""

    def __init__(self, wanted: Plan) -> None:
        self._wanted, self.scene = wanted, wanted.scene
        self.run: Recording = Recording()

    def title(self, name: str) -> str:
        """Name the workload."""
        return (
            f"{name}: {self._wanted.duration_s:g} s of a recorded workload in real time, open-loop "
            f"({plan.TRACE_TITLE}, times {plan.SCALE:g})"
        )

    def start_load(self, target: Cluster, reading: Reader, name: str) -> None:
        """Put trace and generator into the cluster."""
        service, replay = reading.service(), self._wanted.replay
        arrivals.arrivals(traces.load(plan.TRACE), replay)  # a bad window fails here, not there
        job = load_job.replaying(
            plan.LOAD_JOB,
            image=plan.LOAD_IMAGE,
            url=reading.address(),
            model=name,
            target_s=service.target_s,
            replay=replay,
        )
        trace = load_job.config_map(plan.LOAD_JOB, plan.TRACE.read_bytes())
        for manifest in (trace, job):
            load_job.put(target, self.scene.namespace, manifest)

    def view(self, snapshot: Snapshot, title: str) -> RenderableType:
        """Lay out the last snapshot and the generator's last seconds."""
        return layout.view(table.rows(snapshot, self.run), snapshot, self.run, title)

    def line(self, snapshot: Snapshot) -> str:
        """Say the same in one line."""
        return layout.line(table.rows(snapshot, self.run), snapshot, self.run)

    def conclude(self, name: str, folder: Path, console: Console) -> bool:
        """Print and write report, messages and picture; return whether every check held."""
        recording = self.run
        found = checks.evaluate(
            recording,
            requirements.Requirements(
                gpus=plan.GPUS,
                least_attainment=plan.LEAST_ATTAINMENT,
                last_stretch_s=plan.LAST_STRETCH_S,
                latest_send_s=plan.LATEST_SEND_S,
                longest_unanswered_s=plan.LONGEST_UNANSWERED_S,
                full_length=self._wanted.duration_s >= plan.DURATION_S,
            ),
        )
        report.write(report.render(recording, found), folder, console)
        heard: list[Message] = [*recording.seconds, *recording.windows]
        (folder / "load.jsonl").write_text("".join(f"{write(message)}\n" for message in heard))
        if recording.started is not None and recording.during():
            title = f"{name}: p95 below {recording.started.target_s:g} s with the fewest GPUs"
            drawn = figure.drawn(recording, title=title, subtitle=plan.TRACE_TITLE)
            panels.save(drawn, folder / "run.png", console)
        return all(check.held for check in found)
