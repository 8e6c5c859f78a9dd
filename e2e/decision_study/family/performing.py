"""Performs runs of the family, the missing ones only, in worker processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from decision_study import running
from decision_study.family import hard, kept, members
from decision_study.family.kept import Kept
from decision_study.family.measures import hours_of
from decision_study.progress import bar
from decision_study.records import OURS, Job
from decision_study.versions import family_version_of
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario


def scenario_of(name: str) -> Scenario:
    """Return the scenario of a member or of a hard row."""
    return hard.scenario_of(name) if name in hard.ROWS else members.scenario_of(name)


def description_of(name: str) -> str:
    """Return what a cell is, in short: batch, target, cold start, routing, clients, ceiling.

    Worked: "B4 cv 0.3, target 3.2x of 0.21 s, start 120 s, Random, limited 64, at most 12".
    """
    spec = scenario_of(name).workloads[0].spec
    server, clients = spec.server, spec.clients
    places = f"B{server.max_batch}" + (f"x{server.slots}" if server.slots > 1 else "")
    alone_s = server.execution_s(1)
    ratio = spec.policy.latency_target_s / alone_s
    asks = "open loop"
    if clients.users is not None:
        asks = f"up to {clients.most_users} users"
    elif clients.connections is not None:
        asks = f"{clients.connections} connections"
    elif clients.retries:
        asks = f"{clients.retries} retries"
    parts = (
        f"{places} cv {server.cv:.1f}",
        f"target {ratio:.1f}x of {alone_s:.2g} s",
        f"start {spec.cold_start.median_s:.0f} s",
        spec.network.routing.value,
        asks,
        f"at most {spec.policy.max_replicas}",
    )
    return ", ".join(parts)


def perform(job: Job) -> Kept:
    """Perform one run."""
    scenario = scenario_of(job.cell)
    spec = scenario.workloads[0].spec
    knobs: dict[str, float | str] = dict(job.knobs)
    began_s = time.monotonic()
    (outcome,) = simulate(
        scenario, lambda truth: catalogue.make(job.autoscaler, truth, knobs), job.seed
    )
    return Kept(
        job=job,
        version=family_version_of(job.autoscaler),
        wall_s=round(time.monotonic() - began_s, 3),
        hours=hours_of(
            outcome, duration_s=scenario.duration_s, cold_start_s=spec.cold_start.median_s
        ),
        max_replicas=spec.policy.max_replicas,
        operations=outcome.score.operations,
    )


def complete(jobs: Sequence[Job], path: Path, *, workers: int, console: Console) -> dict[Job, Kept]:
    """Return the records of all jobs; those that are not in the file are run and added to it.

    Jobs of one member follow one another, because its scenario is drawn once per process.
    """
    known = kept.load(path)
    done = kept.current(known, jobs)
    missing = sorted((job for job in jobs if job not in done), key=lambda job: job.cell)
    console.print(f"{len(done)} runs exist, {len(missing)} to go")
    if not missing:
        return done
    began_s = time.monotonic()
    with bar(console) as shown:
        weights = {job: _expected_s(job, known) for job in missing}
        task = shown.add_task("family", total=sum(weights.values()), ended=f"0/{len(missing)}")
        ended = 0

        def finished(job: Job, result: Kept | Exception) -> None:
            nonlocal ended
            ended += 1
            if isinstance(result, Exception):
                words = f"{job.cell}, {job.setting}: {type(result).__name__}: {result}"
                shown.console.print(f"[red]failed:[/red] {escape(words)}", soft_wrap=True)
            else:
                kept.append(path, result)
                done[job] = result
            shown.update(task, advance=weights[job], ended=f"{ended}/{len(missing)}")

        running.carry_out(missing, workers=workers, finished=finished, perform=perform)
    console.print(f"{time.monotonic() - began_s:.0f} s")
    return done


def _expected_s(job: Job, known: dict[Job, Kept]) -> float:
    before = known.get(job)
    if before is not None:
        return before.wall_s
    return 2.5 if job.autoscaler == OURS else 0.3
