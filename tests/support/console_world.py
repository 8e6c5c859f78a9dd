"""A console with something to show: a service that lived through an hour, and many others."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from headroom.api import InferenceService
from headroom.api.service_status import status_rendering
from headroom.api.service_status.conditions import Condition
from headroom.api.timestamps import rfc3339
from headroom.console.read_model import ReadModel
from headroom.controller.gather.pods.pods import ObservedPod
from headroom.controller.report.evaluation import Evaluation
from headroom.scaling import Decision, Observation, PodState
from support.fakes_scaling import Service, policy
from support.service_world import body

START_S = 1_795_176_000.0
"""2026-11-20T12:00:00Z."""
GOOD = (
    ("Ready", "True", "Serving", "4 of 4 replicas are warm"),
    ("ScalingActive", "True", "Auto", "decisions are written"),
    (
        "AbleToScale",
        "True",
        "NothingToScale",
        "the workload already has the desired number of replicas",
    ),
    ("ScalingLimited", "False", "WithinBounds", "nothing holds the number of replicas back"),
    ("MetricsAvailable", "True", "MetricsFresh", "100% of the warm replicas have a sample"),
    ("SLOMet", "True", "WithinTarget", "p95 is 480ms, the target 1.5s"),
    ("SLOFeasible", "True", "Feasible", "an idle replica answers in 210ms"),
    ("DemandVisible", "True", "DemandCounted", "every request is counted once"),
    ("ScalingEffective", "True", "NoObstacle", "nothing was found"),
    ("CapacityAvailable", "True", "AllReplicasScheduled", "every replica has a node"),
)
WORSE = {
    "AboveTarget": (("SLOMet", "False", "AboveTarget", "p95 is 2.1s, the target 1.5s"),),
    "NoCapacity": (
        (
            *("CapacityAvailable", "False", "ReplicasUnschedulable"),
            "2 replicas: 0/8 nodes are available: 8 Insufficient nvidia.com/gpu.",
        ),
    ),
    "Blocked": (("Ready", "False", "InvalidSpec", "spec.model.uri: must not contain .."),),
    "WarmingUp": (("Ready", "False", "WarmingUp", "0 of 1 replicas are warm"),),
    "NoTraffic": (("SLOMet", "Unknown", "NoTraffic", "no request ended in the stable window"),),
    "Healthy": (),
}


class Hour(Service):
    """A service whose every evaluation is shown to a model."""

    def __init__(self, name: str, **given: Any) -> None:
        super().__init__(**given)
        self.name = name
        self.model: ReadModel | None = None
        self.raw = raw(name)

    def tick(self) -> Decision:
        before = self.state
        decision = super().tick()
        if self.model is not None:
            self.model.on_decision(
                evaluation(self.raw, self.policy, before, self.observed, decision)
            )
        return decision

    def observe(self) -> Observation:
        """Remember what was seen before the decision is obeyed."""
        seen = super().observe()
        pods = tuple(replace(pod, scheduled_s=pod.created_s + 0.4) for pod in seen.pods)
        self.observed = replace(seen, pods=pods)
        return self.observed

    def stored(self) -> dict[str, Any]:
        """The object as the operator would have left it."""
        one = copy.deepcopy(self.raw)
        last = self.decisions[-1]
        one["status"] |= status_rendering.build(
            generation=3,
            current=last.replicas,
            selector="headroom.dev/inference-service=" + self.name,
            conditions=conditions(),
            counts=last.counts,
            decision=last,
        )
        return one


def evaluation(
    stored: dict[str, Any], with_policy: Any, state: Any, observation: Any, decision: Decision
) -> Evaluation:
    pods = tuple(
        ObservedPod(
            pod=pod,
            name=f"{stored['metadata']['name']}-6d9f-{pod.uid}",
            ip="10.0.0.1",
            running_s=pod.created_s + 2.6 if pod.state is PodState.READY else None,
        )
        for pod in observation.pods
    )
    service = InferenceService.parse(stored)
    return Evaluation(
        service=service,
        policy=with_policy,
        state=state,
        observation=observation,
        pods=pods,
        decision=decision,
        accelerators_per_replica=service.spec.accelerator.count,
    )


def raw(name: str, namespace: str = "vision", **changes: Any) -> dict[str, Any]:
    """An object as it is stored, with its defaults."""
    one = body(
        metadata__name=name,
        metadata__namespace=namespace,
        metadata__uid=f"uid-{namespace}-{name}",
        spec__slo={
            "latency": {"percentile": 95, "target": "1.5s"},
            "utilizationCeiling": 0.8,
        },
        spec__accelerator={"resource": "nvidia.com/gpu", "count": 1},
        spec__scaling={"mode": "Auto", "minReplicas": 1, "maxReplicas": 20},
        **changes,
    )
    one["status"] = one.get("status", {})
    return one


def conditions(worse: Sequence[tuple[str, str, str, str]] = ()) -> tuple[Condition, ...]:
    """All that is said about a service, with what is worse in its place."""
    said = {kind: (kind, *rest) for kind, *rest in GOOD} | {one[0]: one for one in worse}
    return tuple(
        Condition.model_validate(
            {
                "type": kind,
                "status": holds,
                "reason": reason,
                "message": message,
                "lastTransitionTime": rfc3339(START_S - 7200),
            }
        )
        for kind, holds, reason, message in said.values()
    )


def bystander(number: int) -> dict[str, Any]:
    """One of many services, each in its own state."""
    names = ("resnet50", "bert-base", "whisper", "clip-vit", "llama-8b", "yolo")
    spaces = ("vision", "speech", "search", "chat")
    state = ("Healthy",) * 14 + (
        "NoTraffic",
        "NoTraffic",
        "AboveTarget",
        "NoCapacity",
        "Blocked",
        "WarmingUp",
    )
    chosen = state[number % len(state)]
    one = raw(f"{names[number % len(names)]}-{number}", spaces[number % len(spaces)])
    replicas = 1 + number * 7 % 18
    known = chosen not in ("Blocked", "WarmingUp")
    busy = known and chosen != "NoTraffic"
    one["metadata"]["resourceVersion"] = str(number + 1)
    one["status"] = {
        "observedGeneration": 3,
        "replicas": replicas,
        "readyReplicas": replicas - 1 if chosen in ("NoCapacity", "WarmingUp") else replicas,
        "unschedulableReplicas": 1 if chosen == "NoCapacity" else 0,
        "warmingReplicas": 1 if chosen == "WarmingUp" else 0,
        "decision": {
            "replicas": replicas,
            "reason": "LatencyModel" if busy else "MinReplicas",
            "message": f"{replicas} replicas kept",
            "time": rfc3339(START_S),
        },
        "signals": {
            "freshness": "Fresh" if known else "Missing",
            **({"waiting": float(number % 7), "arrivalsPerSecond": 0.0} if known else {}),
        },
        "conditions": [one.manifest() for one in conditions(WORSE[chosen])],
    }
    if busy:
        one["status"]["signals"] |= {
            "arrivalsPerSecond": round(replicas * (2.0 + number % 60 / 10), 1),
            "utilization": round(0.35 + number % 55 / 100, 3),
            "latency": "2.1s" if chosen == "AboveTarget" else f"{180 + number * 37 % 900}ms",
        }
    return one


def an_hour(
    name: str = "demo", rate_rps: Callable[[float], float] | None = None, seconds: float = 3600.0
) -> tuple[ReadModel, Hour]:
    """Live through an hour of load that rises and falls, and give what the console knows of it."""
    hour = Hour(name, rate_rps=10.0, policy=policy(), now_s=START_S - seconds, gpus=8)
    model = ReadModel(lambda: [hour.stored()])
    hour.model = model
    rate = rate_rps or (
        lambda t: 22.0 + 18.0 * math.sin(t / 500.0) + (25.0 if t % 1500 < 90 else 0)
    )
    elapsed_s = 0.0
    while elapsed_s < seconds:
        hour.rate_rps = rate(elapsed_s)
        hour.tick()
        elapsed_s += hour.tick_s
    return model, hour
