"""Checks of each service: its spec, its workload, who else scales it, its accelerators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from headroom.api import InferenceService, InvalidSpec
from headroom.api.reasons import StatusReason
from headroom.api.timestamps import epoch_s
from headroom.cli.commands.doctor.facts import Facts, Manifest
from headroom.cli.commands.doctor.findings import Diagnosis, note, problem, warning

SILENT_AFTER_S = 300.0
"""Status is written every minute; a quarter second for each service where they are many."""
_PER_SERVICE_S = 0.5


def the_spec_is_valid(facts: Facts) -> Iterator[Diagnosis]:
    """Stored before a rule was, or refused by the API server in its children."""
    for one in facts.services:
        edit = f"kubectl edit {_named(one)}"
        try:
            InferenceService.parse(one)
        except InvalidSpec as error:
            yield problem(StatusReason.INVALID_SPEC, subject(one), str(error), edit)
            continue
        found = condition(one, "Ready")
        if found.get("reason") == "InvalidSpec":
            yield problem(StatusReason.INVALID_SPEC, subject(one), _said(found), edit)


def the_promise_can_be_kept(facts: Facts) -> Iterator[Diagnosis]:
    """A target below what an idle replica takes is a wish; so is one that a bound forbids."""
    for one in facts.services:
        found = condition(one, "SLOFeasible")
        if found.get("status") == "False":
            yield problem(
                StatusReason.SLO_INFEASIBLE,
                subject(one),
                found.get("message", ""),
                "raise spec.slo.latency.target above what an idle replica takes, or use a faster "
                "accelerator or model",
            )
        limited, missed = condition(one, "ScalingLimited"), condition(one, "SLOMet")
        if limited.get("reason") == "AtMaxReplicas" and missed.get("status") == "False":
            yield warning(
                StatusReason.AT_MAX_REPLICAS,
                subject(one),
                f"{missed.get('message', '')}; {limited.get('message', '')}",
                "raise spec.scaling.maxReplicas",
            )


def it_is_evaluated(facts: Facts) -> Iterator[Diagnosis]:
    """The operator is there, and has said nothing about the spec, or nothing for long."""
    if not any(one.get("status", {}).get("availableReplicas") for one in facts.operators):
        return
    patience_s = max(SILENT_AFTER_S, _PER_SERVICE_S * len(facts.services))
    remedy = "see that the operator watches this namespace (its --namespace) and what its log says"
    for one in facts.services:
        status, now_s = one.get("status") or {}, facts.now_s
        since = (status.get("decision") or {}).get("time") or one["metadata"].get(
            "creationTimestamp"
        )
        if now_s is None or since is None or now_s - epoch_s(since) <= patience_s:
            continue
        seen = status.get("observedGeneration", 0)
        if seen < one["metadata"].get("generation", 0):
            why = f"generation {one['metadata']['generation']} is not observed, {seen} was"
            yield problem(StatusReason.NOT_EVALUATED, subject(one), why, remedy)
        elif (failed := condition(one, "ScalingActive")).get("reason") == "EvaluationFailed":
            why = failed.get("message", "")
            yield problem(StatusReason.EVALUATION_FAILED, subject(one), why, remedy)
        elif condition(one, "Ready").get("reason") != "InvalidSpec":
            why = f"nothing was decided for {(now_s - epoch_s(since)) / 60:.0f} min"
            yield problem(StatusReason.NOT_EVALUATED, subject(one), why, remedy)


def the_target_is_there(facts: Facts) -> Iterator[Diagnosis]:
    """Only a workload that was named can be missing: an own one is created."""
    for one in facts.services:
        named = one["spec"].get("targetRef")
        if named and facts.targets.get(_uid(one), one) is None:
            what = f"{named.get('kind')} {one['metadata']['namespace']}/{named.get('name')}"
            yield problem(
                StatusReason.TARGET_NOT_FOUND,
                subject(one),
                f"spec.targetRef names {what}, which is not there",
                f"create it, or name another: kubectl get {str(named.get('kind')).lower()} "
                f"--namespace {one['metadata']['namespace']}",
            )


def nobody_else_scales_it(facts: Facts) -> Iterator[Diagnosis]:
    """Two that write the replicas undo each other's work for ever."""
    owners: defaultdict[tuple[str, str, str], list[Manifest]] = defaultdict(list)
    for one in facts.services:
        owners[_workload(one)].append(one)
    for scaler in facts.autoscalers:
        aim = scaler["spec"]["scaleTargetRef"]
        namespace, name = scaler["metadata"]["namespace"], scaler["metadata"]["name"]
        for one in owners.get((namespace, aim["kind"], aim["name"]), ()):
            made_by = _maker(scaler) or f"hpa/{name}"
            yield problem(
                StatusReason.AUTOSCALER_CONFLICT,
                subject(one),
                f"HorizontalPodAutoscaler {namespace}/{name} scales the same {aim['kind']}",
                f"kubectl delete {made_by} --namespace {namespace}",
            )
    for (_, kind, name), services in owners.items():
        for one in services[1:]:
            yield problem(
                StatusReason.TARGET_ALREADY_MANAGED,
                subject(one),
                f"{kind} {name} is also scaled by InferenceService {subject(services[0])}",
                "delete one of the two InferenceServices",
            )


def it_is_not_paused(facts: Facts) -> Iterator[Diagnosis]:
    """Switches that somebody may have forgotten."""
    for one in facts.services:
        workload = facts.targets.get(_uid(one))
        if workload and workload.get("spec", {}).get("paused"):
            kind = str(workload.get("kind", "Deployment")).lower()
            name = f"{kind}/{workload['metadata']['name']}"
            yield problem(
                StatusReason.WORKLOAD_PAUSED,
                subject(one),
                f"the rollout of {name} is paused: changes of its template do not reach its pods",
                f"kubectl rollout resume {name} --namespace {one['metadata']['namespace']}",
            )
        if (one["spec"].get("scaling") or {}).get("mode") == "Recommend":
            yield warning(
                StatusReason.RECOMMEND_ONLY,
                subject(one),
                "scaling.mode is Recommend: decisions are in the status, and not acted on",
                "set spec.scaling.mode to Auto when they should be",
            )


_CHECKED_APART = frozenset(
    {
        StatusReason.TARGET_NOT_FOUND,
        StatusReason.TARGET_ALREADY_MANAGED,
        StatusReason.AUTOSCALER_CONFLICT,
    }
)
_CANNOT_START = frozenset(
    {
        StatusReason.REPLICAS_BROKEN,
        StatusReason.POD_CREATION_FORBIDDEN,
        StatusReason.MODEL_UNAVAILABLE,
    }
)


def replicas_can_start(facts: Facts) -> Iterator[Diagnosis]:
    """What the cluster says about replicas that do not become ready, or are not taken."""
    for one in facts.services:
        capacity, able = condition(one, "CapacityAvailable"), condition(one, "AbleToScale")
        if capacity.get("reason") in _CANNOT_START:
            yield problem(
                StatusReason(capacity["reason"]),
                subject(one),
                capacity.get("message", ""),
                f"kubectl describe pods {_selected(one)}",
            )
        if able.get("status") == "False" and able.get("reason") not in _CHECKED_APART:
            yield problem(
                reason_of(able, StatusReason.SCALE_FAILED),
                subject(one),
                able.get("message", ""),
                "do what the message says; the write is repeated every minute",
            )


def there_are_accelerators(facts: Facts) -> Iterator[Diagnosis]:
    """No node has what a replica needs, or all together too few for what is promised."""
    if not facts.was_read("Node"):
        return
    asked: defaultdict[str, int] = defaultdict(int)
    for one in facts.services:
        accelerator = one["spec"].get("accelerator") or {}
        resource, count = accelerator.get("resource", ""), int(accelerator.get("count") or 0)
        if one["spec"].get("targetRef") or not count:
            continue
        least = int((one["spec"].get("scaling") or {}).get("minReplicas") or 1)
        asked[resource] += least * count
        largest = max((_allocatable(node, resource) for node in facts.nodes), default=0)
        if largest < count:
            yield problem(
                StatusReason.NO_ACCELERATORS,
                subject(one),
                f"a replica needs {count} {resource}, and the most that a node has is {largest}",
                f"add nodes with {resource}, install its device plugin, or change spec.accelerator "
                "(count: 0 needs none)",
            )
    for resource, number in sorted(asked.items()):
        total = sum(_allocatable(node, resource) for node in facts.nodes)
        if 0 < total < number:
            yield note(
                StatusReason.INSUFFICIENT_ACCELERATORS,
                resource,
                f"minReplicas of all services need {number}, the nodes have {total}",
                "add nodes, or lower spec.scaling.minReplicas; spec.scaling.priority says who goes "
                "first",
            )


def condition(one: Manifest, kind: str) -> Mapping[str, Any]:
    """Give a condition of the status; empty where it is not there."""
    for each in (one.get("status") or {}).get("conditions") or ():
        if each.get("type") == kind:
            return each  # type: ignore[no-any-return]
    return {}


def reason_of(found: Mapping[str, Any], otherwise: StatusReason) -> StatusReason:
    """Give the reason of a condition; another version may have written one that is unknown here."""
    try:
        return StatusReason(found.get("reason", ""))
    except ValueError:
        return otherwise


def subject(one: Manifest) -> str:
    """Give what a finding calls a service."""
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


def _workload(one: Manifest) -> tuple[str, str, str]:
    named = one["spec"].get("targetRef") or {}
    metadata = one["metadata"]
    kind, name = named.get("kind", "Deployment"), named.get("name", metadata["name"])
    return metadata["namespace"], kind, name


def _maker(scaler: Manifest) -> str:
    """KEDA makes a HorizontalPodAutoscaler of each ScaledObject: deleting it would not last."""
    for owner in scaler["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner['kind'].lower()}/{owner['name']}"
    return ""


def _allocatable(node: Manifest, resource: str) -> int:
    if node.get("spec", {}).get("unschedulable"):
        return 0
    return int((node.get("status", {}).get("allocatable") or {}).get(resource, 0))


def _selected(one: Manifest) -> str:
    selector = (one.get("status") or {}).get("selector", "")
    return f"--namespace {one['metadata']['namespace']} --selector {selector}"


def _named(one: Manifest) -> str:
    return f"inferenceservice/{one['metadata']['name']} --namespace {one['metadata']['namespace']}"


def _said(found: Mapping[str, Any]) -> str:
    return f"{found.get('reason')}: {found.get('message', '')}"


def _uid(one: Manifest) -> str:
    return str(one["metadata"].get("uid", ""))
