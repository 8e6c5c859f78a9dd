"""Promises per class, from the page of a server to conditions, status and metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from headroom.controller.decide.class_slo import NO_CLASSES
from headroom.scaling.generation.promises.classes import SERVICE, ClassCounts, ClassPromise
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.tokens import Target, TokenTargets
from support.cluster_world import Manifest
from support.controller_world import World, play
from support.pods_world import Pods

BOUNDS_S = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
HOW_LONG_S = {"": 0.8, "chat": 0.3, "batch": 5.0, "plain": 0.8}
"""To the first token, by class."""
SLO = {"timeToFirstToken": {"target": "1s"}, "latency": {"target": "2s"}}
CLASSES = [
    {"name": "chat", "timeToFirstToken": {"target": "500ms"}},
    {"name": "batch", "bestEffort": True},
    {"name": "plain", "priority": 4},
]


def first_tokens(counted: dict[str, tuple[int, float]]) -> str:
    """The histogram of the first token; of each class so many requests that took so long."""
    lines = []
    for name, (count, seconds) in counted.items():
        label = 'model="resnet"' + (f',class="{name}"' if name else "")
        for bound in (*BOUNDS_S, "+Inf"):
            within = count if seconds <= float(bound) else 0
            metric = "headroom_time_to_first_token_seconds_bucket"
            lines.append(f'{metric}{{{label},le="{bound}"}} {within}')
    return "\n".join(lines) + "\n"


class ClassServers(Pods):
    """Our own server; each class sends as many requests as the others."""

    how_long_s = HOW_LONG_S

    def _written(self, pod: Manifest) -> str:
        text, uid = super()._written(pod), pod["metadata"]["uid"]
        served = int(self._served[uid][0])
        counted = {name: (served // 4, one) for name, one in self.how_long_s.items()}
        return text + first_tokens(counted)


class ClassWorld(World):
    def start_operator(self) -> None:
        self.pods = ClassServers(self.cluster, self.clock)
        super().start_operator()


def test_each_class_is_judged_by_its_own_promise() -> None:
    async def scenario(world: World) -> None:
        world.create(slo=SLO, routing={"classes": CLASSES})
        world.pods.arrivals_rps["resnet"] = 4.0
        await world.run_for(120.0)
        assert world.condition("SLOMet") == ("True", "WithinTarget"), "batch has no promise"
        assert "p95 of time to first token of class chat is 487ms" in world.message("SLOMet")
        chat, batch = world.status()["classes"]
        assert chat["attainment"] == 1.0
        assert chat["requestsPerSecond"] == pytest.approx(1.0, rel=0.1)
        assert chat["promises"][0] | {"measured": ""} == {
            "name": "TimeToFirstToken",
            "target": "500ms",
            "measured": "",
            "lateShare": 0.0,
        }
        assert batch == {"name": "batch", "bestEffort": True, "promises": []}
        assert world.status()["signals"]["timeToFirstToken"] == "975ms"

    play(scenario, kind=ClassWorld)


class FilledServers(ClassServers):
    """A thousand best-effort requests a second fill what the others leave."""

    label = 'class="batch",best_effort="batch"'

    def _written(self, pod: Manifest) -> str:
        text, labels = super()._written(pod), f'model="resnet",{self.label}'
        served = int(self._served[pod["metadata"]["uid"]][0]) * 250
        lines = [
            f"headroom_requests_received_total{{{labels}}} {served + 40}",
            f'headroom_requests_total{{{labels},outcome="ok"}} {served}',
            f"headroom_requests_waiting{{{labels}}} 30",
            f"headroom_requests_running{{{labels}}} 10",
        ]
        bounds = [line for line in text.splitlines() if "duration_seconds_bucket" in line]
        for line in bounds:
            name = line.partition(" ")[0].replace('model="resnet"', labels)
            bound = float(name.partition('le="')[2].partition('"')[0])
            lines.append(f"{name} {served if bound >= 1.0 else 0}")
        return text + "\n".join(lines) + "\n"


class FilledWorld(World):
    def start_operator(self) -> None:
        self.pods = FilledServers(self.cluster, self.clock)
        super().start_operator()


def test_best_effort_requests_that_fill_what_others_leave_add_no_replica() -> None:
    async def scenario(world: World) -> None:
        world.create(slo=SLO, routing={"classes": CLASSES})
        world.pods.arrivals_rps["resnet"] = 4.0
        await world.run_for(120.0)
        assert world.replicas() == 1
        assert world.status()["signals"]["arrivalsPerSecond"] == pytest.approx(4.0, rel=0.1)
        assert world.status()["signals"]["waiting"] == 0
        assert world.condition("SLOMet") == ("True", "WithinTarget")

    play(scenario, kind=FilledWorld)


def test_class_that_becomes_best_effort_is_no_jump_of_the_others() -> None:
    """Its counters leave the sums, which must not read as a restart of the servers."""

    async def scenario(world: World) -> None:
        promised = [CLASSES[0], CLASSES[2]]
        world.create(slo=SLO, routing={"classes": promised}, scaling={"maxReplicas": 3})
        world.pods.arrivals_rps["resnet"] = 4.0
        await world.run_for(60.0)
        assert world.replicas() == 3, "a thousand a second count"
        world.edit(slo=SLO, routing={"classes": CLASSES}, scaling={"maxReplicas": 3})
        await world.run_for(60.0)
        assert world.status()["signals"]["arrivalsPerSecond"] == pytest.approx(4.0, rel=0.2)

    play(scenario, kind=FilledWorld)


def test_class_that_misses_its_promise_is_named_and_no_replica_is_removed() -> None:
    async def scenario(world: World) -> None:
        world.create(slo=SLO, routing={"classes": CLASSES})
        world.pods.arrivals_rps["resnet"] = 4.0
        world.pods.how_long_s = HOW_LONG_S | {"chat": 0.8}  # type: ignore[attr-defined]
        await world.run_for(120.0)
        assert world.condition("SLOMet") == ("False", "AboveTarget")
        assert "of class chat is 975ms, the target 500ms" in world.message("SLOMet")
        chat, _ = world.status()["classes"]
        assert chat["attainment"] == 0.0
        found, room = world.recorder.tokens[-1]
        assert found["timeToFirstToken"] == pytest.approx(0.975), "the service keeps its own"
        assert room > 1.0, "the capacity factor follows the class"

    play(scenario, kind=ClassWorld)


class UnlabelledServers(Pods):
    """vLLM, whose metrics name no class: each first token takes 300 ms, each answer 400 ms."""

    def _page(self, pod: Manifest) -> str:
        super()._page(pod)
        served, label = int(self._served[pod["metadata"]["uid"]][0]), 'model_name="m"'
        lines = [
            f"vllm:num_requests_waiting{{{label}}} 0",
            f"vllm:num_requests_running{{{label}}} 1",
            f'vllm:request_success_total{{{label},finished_reason="stop"}} {served}',
            f"vllm:request_inference_time_seconds_sum{{{label}}} {served * 0.4}",
        ]
        for name, seconds in (("e2e_request_latency", 0.4), ("time_to_first_token", 0.3)):
            for bound in (*BOUNDS_S, "+Inf"):
                within = served if seconds <= float(bound) else 0
                lines.append(f'vllm:{name}_seconds_bucket{{{label},le="{bound}"}} {within}')
        return "\n".join(lines) + "\n"


class UnlabelledWorld(World):
    def start_operator(self) -> None:
        self.pods = UnlabelledServers(self.cluster, self.clock)
        super().start_operator()


def test_server_that_does_not_count_per_class_leaves_its_promises_unknown() -> None:
    async def scenario(world: World) -> None:
        world.create(
            runtime={"profile": "vllm", "maxBatchSize": 16},
            model={"name": "m"},
            slo=SLO,
            routing={"classes": CLASSES},
        )
        world.pods.arrivals_rps["resnet"] = 4.0
        await world.run_for(120.0)
        assert world.condition("SLOMet") == ("Unknown", "ClassNotMeasured")
        assert "so the promises of chat are not measured" in world.message("SLOMet")
        chat, _ = world.status()["classes"]
        assert chat["unknown"] == "NotCountedByClass"
        assert "attainment" not in chat
        assert "measured" not in chat["promises"][0]
        assert world.status()["signals"]["timeToFirstToken"] == "487ms"

    play(scenario, kind=UnlabelledWorld)


def test_class_that_only_best_effort_requests_use_blocks_no_removal() -> None:
    """Only best-effort requests end: nothing is promised to them, so nothing is unknown either."""
    promises = (
        promise(SERVICE, 1.0),
        promise("chat", 0.5),
        ClassPromise(name="batch", targets=TokenTargets()),
    )
    slo = NO_CLASSES
    for count in (0.0, 40.0):
        late = LatencyCounts(bounds_s=(1.0, math.inf), counts=(0.0, count))
        classes = {"": ClassCounts(), "batch": ClassCounts(missed=count, first_token=late)}
        slo = slo.observe(promises, {"a": Read(classes)}, count, counted=True)  # type: ignore[dict-item]
    assert slo.measured == ()
    assert slo.state.judgement is not None
    assert slo.state.judgement.attainment is None


@dataclass
class Read:
    """The part of a reading that has classes."""

    classes: dict[str, ClassCounts]


def promise(name: str, first_s: float) -> ClassPromise:
    first = Target(percentile=0.95, seconds=first_s)
    return ClassPromise(name=name, targets=TokenTargets(first_token=first))
