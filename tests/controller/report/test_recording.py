"""The operator records the arrivals at the intake, and a simulation can replay them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from headroom.controller.report.arrival_counter import ArrivalCounter
from headroom.scaling import Observation, Pod, PodSample, PodState, Policy
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import GatewayRejections
from headroom.simulator.arrivals import PoissonArrivals
from headroom.simulator.arrivals.recording import RecordedService, read_recording
from headroom.simulator.arrivals.shapes import constant
from headroom.simulator.autoscaler import GroundTruth, ScaleRequest, View
from headroom.simulator.plant import Network, Server, ServiceSpec
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Fault, FaultKind, Scenario, Workload
from headroom.simulator.scenario_file import load_scenario
from headroom.telemetry.recording import (
    ServiceLine,
    TickLine,
    header_line,
    read_line,
    service_line,
    tick_line,
)
from support.controller_world import World, play
from support.fakes_scaling import ready_pod, sample

NAME = "default/resnet"


def seen(
    now_s: float, counters: dict[str, float | None], *, born_s: dict[str, float] | None = None
) -> Observation:
    """Return a look at ready pods by their counters; None does not answer."""
    born_s = born_s or {}
    return Observation(
        now_s=now_s,
        current=len(counters),
        pods=tuple(ready_pod(uid, created_s=born_s.get(uid, 0.0)) for uid in counters),
        samples=tuple(
            sample(uid, now_s, count) for uid, count in counters.items() if count is not None
        ),
    )


# Watching begins at 100 s, a tick each 2 s. Each row: what each ready pod's counter shows at every
# tick, and the arrivals that follow. Pods a and b are older than the watch, y came under it.
COUNTED = {
    "one replica": ([{"a": 50}, {"a": 54}, {"a": 54}], [None, 4, 0]),
    "two replicas": ([{"a": 5, "b": 7}, {"a": 6, "b": 10}], [None, 1 + 3]),
    "one comes up under our eyes": ([{"a": 5}, {"a": 6, "y": 3}, {"a": 8, "y": 9}], [None, 4, 8]),
    "one is found that is older": ([{"a": 5}, {"a": 6, "b": 3}, {"a": 8, "b": 9}], [None, None, 8]),
    "one is silent": (
        [{"a": 5, "b": 5}, {"a": 6, "b": None}, {"a": 7, "b": 9}, {"a": 8, "b": 9}],
        [None, None, None, 1],
    ),
    "a new one is silent at first": (
        [{"a": 5}, {"a": 6, "y": None}, {"a": 7, "y": 8}, {"a": 8, "y": 9}],
        [None, None, None, 2],
    ),
    "one goes": ([{"a": 5, "b": 5}, {"a": 9}, {"a": 12}], [None, None, 3]),
    "one restarts at zero": ([{"a": 50}, {"a": 3}, {"a": 8}], [None, None, 5]),
    "no pod is there": ([{"a": 5}, {}, {}, {"y": 4}, {"y": 6}], [None, None, None, None, 2]),
    "all are silent": ([{"a": 5}, {"a": None}, {"a": None}, {"a": 9}], [None, None, None, None]),
}


@pytest.mark.parametrize(("ticks", "arrivals"), COUNTED.values(), ids=COUNTED.keys())
def test_arrival_counter_is_exact_or_unknown(
    ticks: list[dict[str, float | None]], arrivals: list[int | None]
) -> None:
    counter, counted = ArrivalCounter(), []
    for number, counters in enumerate(ticks):
        count, counter = counter.counted(seen(100.0 + 2 * number, counters, born_s={"y": 101.0}))
        counted.append(count)
    assert counted == arrivals


def test_arrival_counter_detects_a_restart_in_any_counter() -> None:
    before = seen(100.0, {"a": 5})
    low = replace(before.samples[0], missed=3.0, batches=3.0)
    _, counter = ArrivalCounter().counted(replace(before, samples=(low,)))
    more = replace(low, time_s=102.0, arrivals=9.0)

    def count(now: PodSample) -> int | None:
        return counter.counted(replace(before, now_s=102.0, samples=(now,)))[0]

    assert count(more) == 4
    assert count(replace(more, missed=0.0)) is None
    assert count(replace(more, batches=0.0)) is None


def test_arrival_counter_without_latency_uses_other_counters() -> None:
    untimed = LatencyCounts(bounds_s=(), counts=())
    looks = [seen(100.0 + 2 * number, {"a": count}) for number, count in enumerate((5, 9))]
    counter = ArrivalCounter()
    counted = []
    for look in looks:
        samples = tuple(replace(one, latency=untimed) for one in look.samples)
        count, counter = counter.counted(replace(look, samples=samples))
        counted.append(count)
    assert counted == [None, 4]


def test_arrival_counter_after_unready_replica_keeps_its_baseline() -> None:
    warming = Pod(uid="y", state=PodState.WARMING, created_s=101.0)
    looks = [
        seen(100.0, {"a": 5}),
        seen(102.0, {"a": 6, "y": 9}, born_s={"y": 101.0}),
        replace(seen(104.0, {"a": 7}), pods=(ready_pod("a"), warming)),
        replace(seen(106.0, {"a": 8}), pods=(ready_pod("a"), warming)),
        seen(108.0, {"a": 9, "y": 12}, born_s={"y": 101.0}),
        seen(110.0, {"a": 9, "y": 16}, born_s={"y": 101.0}),
    ]
    counter, counted = ArrivalCounter(), []
    for look in looks:
        count, counter = counter.counted(look)
        counted.append(count)
    assert counted == [None, 10, None, 1, None, 4]


# Rejections counted by the gateways by each tick, None if not known; replica a takes 4 a tick.
REJECTED = {
    "no gateways": ([None, None, None], [None, 4, 4]),
    "nothing is rejected": ([7, 7, 7], [None, 4, 4]),
    "three are rejected": ([7, 10, 10], [None, 4 + 3, 4]),
    "a gateway falls silent": ([7, None, None, 12, 13], [None, None, 4, None, 4 + 1]),
    "gateways are added": ([None, 0, 2], [None, None, 4 + 2]),
    "their count restarts": ([7, 2, 5], [None, None, 4 + 3]),
}


@pytest.mark.parametrize(("rejected", "arrivals"), REJECTED.values(), ids=REJECTED.keys())
def test_arrival_counter_with_rejections_at_the_gateway_adds_them(
    rejected: list[float | None], arrivals: list[int | None]
) -> None:
    counter, counted = ArrivalCounter(), []
    for number, count in enumerate(rejected):
        look = seen(100.0 + 2 * number, {"a": 4.0 * number})
        rejections = None if count is None else GatewayRejections(time_s=look.now_s, requests=count)
        arrived, counter = counter.counted(replace(look, rejected_at_gateway=rejections))
        counted.append(arrived)
    assert counted == arrivals


def test_arrival_counter_while_a_ready_replica_is_unlisted_does_not_know() -> None:
    counter, counted = ArrivalCounter(), []
    for number, unlisted in enumerate((0, 0, 1, 0, 0)):
        look = replace(seen(100.0 + 2 * number, {"a": 4.0 * number}), unlisted_ready=unlisted)
        arrived, counter = counter.counted(look)
        counted.append(arrived)
    assert counted == [None, 4, None, None, 4]


def parsed(world: World) -> list[ServiceLine | TickLine]:
    lines = [read_line(line) for line in world.sink.lines]
    return [line for line in lines if isinstance(line, ServiceLine | TickLine)]


def ticks_of(world: World) -> list[TickLine]:
    return [line for line in parsed(world) if isinstance(line, TickLine)]


def recorded(world: World) -> RecordedService:
    return read_recording([header_line(), *world.sink.lines], "rec.jsonl")[NAME]


def test_recording_has_every_counted_request() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        assert {tick.arrivals for tick in ticks_of(world)} == {None, 0}
        world.pods.arrivals_rps["resnet"] = 7.0
        await world.run_for(60.0)
        world.pods.arrivals_rps["resnet"] = 0.0
        await world.run_for(4.0)
        (pod,) = world.pods.of("resnet")
        page = await world.pods.scrape(f"http://{pod['status']['podIP']}:8000/metrics", "", 1 << 18)
        received = int(page.splitlines()[0].split()[-1])
        found = recorded(world)
        assert 400 < received == found.counts.sum()
        assert len(found.replicas) == len(world.recorder.decisions)
        assert found.policy.latency_target_s == 1.5
        cost = world.recorder.decisions[-1].cost
        assert cost is not None
        assert found.cost is not None
        assert found.cost.fixed_s == pytest.approx(cost.fixed_s, rel=0.05)
        known = [tick.arrivals for tick in ticks_of(world)]
        assert None not in known[known.index(0) :]

    play(scenario)


def test_recording_has_the_requested_replicas() -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.pods.arrivals_rps["resnet"] = 36.0
        await world.run_for(60.0)
        replicas = [tick.replicas for tick in ticks_of(world)]
        changes = [b for a, b in pairwise(replicas) if b != a]
        assert changes == world.cluster.scale_writes
        assert replicas[-1] == world.replicas() >= 4

    play(scenario)


def test_recording_of_a_silent_replica_is_unknown() -> None:
    async def scenario(world: World) -> None:
        world.create()
        world.pods.arrivals_rps["resnet"] = 7.0
        await world.run_for(40.0)
        before = len(ticks_of(world))
        world.pods.silent = True
        await world.run_for(20.0)
        silent = ticks_of(world)[before + 1 :]
        assert len(silent) >= 8
        assert {tick.arrivals for tick in silent} == {None}
        world.pods.silent = False
        await world.run_for(20.0)
        assert {tick.arrivals for tick in ticks_of(world)[-5:]} <= {13, 14, 15}
        found = recorded(world)
        assert found.unknown_s >= 18.0
        assert found.counts[-20:].mean() == pytest.approx(14.0, abs=0.5)  # bridged at the rate

    play(scenario)


def test_recording_describes_a_service_per_spec() -> None:
    def described(world: World) -> list[ServiceLine]:
        return [line for line in parsed(world) if isinstance(line, ServiceLine)]

    async def scenario(world: World) -> None:
        world.create()
        world.pods.arrivals_rps["resnet"] = 7.0
        await world.run_for(6.0)
        (first,) = described(world)
        assert (first.service, first.cost, first.cold_start_s) == (NAME, None, None)
        await world.run_for(60.0)
        learned = described(world)[-1]
        assert learned.cost is not None
        assert learned.cold_start_s == pytest.approx(10.0, abs=1.0)
        count = len(described(world))
        await world.run_for(120.0)
        assert len(described(world)) == count
        world.edit(scaling={"maxReplicas": 12})
        await world.run_for(10.0)
        assert len(described(world)) == count + 1
        assert described(world)[-1].policy.max_replicas == 12

    play(scenario)


def test_recording_continues_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        world.create()
        world.pods.arrivals_rps["resnet"] = 7.0
        await world.run_for(40.0)
        before = len(world.sink.lines)
        await world.restart_operator()
        await world.run_for(20.0)
        again, tick = (read_line(line) for line in world.sink.lines[before : before + 2])
        assert isinstance(again, ServiceLine)
        assert isinstance(tick, TickLine)
        assert tick.arrivals is None
        assert recorded(world).edges_s[-1] > 55.0

    play(scenario)


@pytest.mark.parametrize("failure", [OSError("no space left on device"), RuntimeError("a fault")])
def test_recording_failure_ends_it_and_fails_no_tick(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        world.create()
        await world.run_for(20.0)
        world.sink.failure, asked = failure, world.sink.asked
        world.pods.arrivals_rps["resnet"] = 36.0
        await world.run_for(60.0)
        assert world.replicas() >= 4
        assert set(world.recorder.outcomes) == {"ok"}
        assert world.sink.asked == asked + 1

    play(scenario)
    said = [record.message for record in caplog.records if "recording" in record.message]
    assert len(said) == 1
    assert str(failure) in said[0]


class Recorded:
    """An autoscaler of a few steps that writes down what the operator would have seen."""

    name, period_s, scrape_s = "steps", 2.0, math.inf

    def __init__(self, policy: Policy, lines: list[str]) -> None:
        self._counter, self._policy, self._lines = ArrivalCounter(), policy, lines
        lines += [header_line(), service_line(NAME, policy)]

    def evaluate(self, view: View) -> ScaleRequest:
        replicas = 4 if view.now_s >= 100.0 else 3
        observation = Observation(
            now_s=view.now_s, current=view.replicas, pods=view.pods, samples=view.samples
        )
        arrivals, self._counter = self._counter.counted(observation)
        self._lines.append(tick_line(NAME, view.now_s, arrivals, replicas))
        return ScaleRequest(replicas=replicas)

    def restart(self) -> None:
        self._counter = ArrivalCounter()


POLICY = Policy(latency_target_s=0.25, max_replicas=9)
SERVER = Server(fixed_s=0.02, per_item_s=0.002, max_batch=16)


def run_recorded(faults: tuple[Fault, ...] = ()) -> tuple[list[str], PoissonArrivals]:
    """Return what was recorded of five minutes at 200 requests a second, and the truth."""
    arrivals = PoissonArrivals(profile=constant(duration_s=300.0, rps=200.0), stream="a")
    spec = ServiceSpec(
        name="resnet", policy=POLICY, server=SERVER, network=Network(), initial_replicas=3
    )
    lines: list[str] = []

    def make(_: GroundTruth) -> Recorded:
        return Recorded(POLICY, lines)

    workload = Workload(spec=spec, arrivals=arrivals)
    simulate(Scenario(name="r", workloads=(workload,), faults=faults), make, seed=3)
    return lines, arrivals


def truth(arrivals: PoissonArrivals, edges_s: np.ndarray) -> list[int]:
    times_s = np.concatenate(list(arrivals.chunks(3 * 1_000_003)))
    counts: list[int] = np.histogram(times_s, edges_s)[0].tolist()
    return counts


def test_recorded_simulation_replays_exactly(tmp_path: Path) -> None:
    lines, arrivals = run_recorded()
    found = read_recording(lines, "rec.jsonl")[NAME]
    assert found.unknown_s == 0.0
    assert found.counts.tolist() == truth(arrivals, found.edges_s + 2.0)
    (tmp_path / "rec.jsonl").write_text("".join(lines))
    (tmp_path / "s.toml").write_text(
        'name = "again"\n[[service]]\nname = "ranker"\narrivals = { recording = "rec.jsonl" }\n'
        'server = { fixed = "20ms", per_item = "2ms", max_batch = 16 }\n'
        "scaling = { initial_replicas = 3 }\n"
    )
    again = load_scenario(tmp_path / "s.toml")
    assert again.workloads[0].spec.policy == POLICY
    lines_again: list[str] = []
    (outcome,) = simulate(again, lambda _: Recorded(POLICY, lines_again), seed=8)
    assert outcome.score.requests == found.counts.sum()
    replayed = read_recording(lines_again, "rec.jsonl")[NAME]
    assert replayed.counts.tolist() == found.counts[1:].tolist()
    assert replayed.replicas.tolist() == found.replicas[:-1].tolist()


def test_recording_of_a_disturbed_run_is_exact_where_known() -> None:
    faults = (
        Fault(kind=FaultKind.SCRAPE_LOSS, start_s=60, duration_s=20, share=0.5),
        Fault(kind=FaultKind.POD_KILL, start_s=200, share=0.3),
        Fault(kind=FaultKind.METRICS_RESTART, start_s=240),
    )
    lines, arrivals = run_recorded(faults)
    ticks = [tick for tick in map(read_line, lines) if isinstance(tick, TickLine)]
    edges_s = np.array([0.0, *(tick.time_s for tick in ticks)])
    pairs = list(zip(truth(arrivals, edges_s), (tick.arrivals for tick in ticks), strict=True))
    unknown = [tick.time_s for tick in ticks if tick.arrivals is None]
    assert all(count == true for true, count in pairs if count is not None)
    assert {2.0, 60.0, 70.0, 80.0, 240.0} <= set(unknown)
    assert any(200.0 <= time_s <= 202.0 for time_s in unknown)
    assert len(unknown) <= 16
