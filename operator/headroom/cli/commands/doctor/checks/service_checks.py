"""Checks of each service: its spec, its workload, other autoscalers, claimed accelerators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from headroom.api import InferenceService, InvalidSpec
from headroom.api.reasons import StatusReason
from headroom.api.timestamps import epoch_s
from headroom.cli.commands.doctor.facts import (
    Facts,
    Manifest,
    resource,
    service_status,
    subject,
    uid,
)
from headroom.cli.commands.doctor.findings import Diagnosis, note, problem, warning
from headroom.controller.services.target_owners import TargetOwners
from headroom.resources import accelerators

SILENT_AFTER_S = 300.0
"""Status is written every minute; a quarter second for each service where they are many."""
_PER_SERVICE_S = 0.5
_UNDECIDED = frozenset(
    {
        *(StatusReason.EVALUATION_FAILED, StatusReason.INVALID_SPEC, StatusReason.DELETING),
        *(StatusReason.TARGET_NOT_FOUND, StatusReason.TARGET_FORBIDDEN),
        *(StatusReason.TARGET_NOT_SCALABLE, StatusReason.NAMESPACE_TERMINATING),
    }
)
"""Reasons with which a service is evaluated and nothing is decided."""
_OF_KUBERNETES = frozenset({"Deployment", "StatefulSet"})
"""Kinds of targets that every API server has."""


def spec_is_valid(facts: Facts) -> Iterator[Diagnosis]:
    """Find specs that were stored before a rule existed."""
    for one in (*facts.services, *facts.malformed):
        try:
            InferenceService.parse(one)
        except InvalidSpec as error:
            namespace, _, _ = subject(one).partition("/")
            edit = f"kubectl edit {resource(one)} --namespace {namespace}"
            yield problem(StatusReason.INVALID_SPEC, subject(one), str(error), edit)


def service_is_evaluated(facts: Facts) -> Iterator[Diagnosis]:
    """Find services for which a running operator has reported nothing, or nothing recent."""
    if not any(one.get("status", {}).get("availableReplicas") for one in facts.operators):
        return
    patience_s = max(SILENT_AFTER_S, _PER_SERVICE_S * len(facts.services))
    remedy = "check that the operator watches this namespace (--namespace), and read its log"
    for one in facts.services:
        status, metadata, now_s = service_status(one), one["metadata"], facts.now_s
        decided = status.decision.time if status.decision else ""
        since = decided or metadata.get("creationTimestamp")
        if now_s is None or since is None or now_s - epoch_s(since) <= patience_s:
            continue
        reasons = {condition.reason for condition in status.conditions}
        generation = metadata.get("generation", 0)
        if status.observed_generation < generation:
            why = f"generation {generation} is not observed; the status describes generation "
            why += f"{status.observed_generation}"
            yield problem(StatusReason.NOT_EVALUATED, subject(one), why, remedy)
        elif not reasons & _UNDECIDED:
            why = f"the last decision is {(now_s - epoch_s(since)) / 60:.0f} min old"
            yield problem(StatusReason.NOT_EVALUATED, subject(one), why, remedy)


def target_exists(facts: Facts) -> Iterator[Diagnosis]:
    """Find targetRefs without a workload; Headroom creates workloads only without targetRef."""
    for one in facts.services:
        named = one["spec"].get("targetRef")
        if named and facts.targets.get(uid(one), one) is None:
            what = f"{named.get('kind')} {one['metadata']['namespace']}/{named.get('name')}"
            yield problem(
                StatusReason.TARGET_NOT_FOUND,
                subject(one),
                f"spec.targetRef names {what}, which does not exist",
                f"{_to_create(named)}; spec.targetRef cannot be changed, so for another workload "
                "delete this InferenceService and apply a new one: kubectl get "
                f"{str(named.get('kind')).lower()} --namespace {one['metadata']['namespace']}",
            )


def _to_create(named: Manifest) -> str:
    """Return how to make a target exist; a kind that the API server lacks is a wrong name."""
    kind = str(named.get("kind", "Deployment"))
    if kind in _OF_KUBERNETES:
        return "create it"
    return f"create it, or correct the kind if kubectl api-resources lists no {kind}"


def no_other_autoscaler(facts: Facts) -> Iterator[Diagnosis]:
    """Find workloads that are also scaled by an HPA or by another InferenceService."""
    owners: defaultdict[tuple[str, str, str], list[Manifest]] = defaultdict(list)
    for one in facts.services:
        owners[_workload(one)].append(one)
    for scaler in facts.autoscalers:
        aim = scaler["spec"]["scaleTargetRef"]
        namespace, name = scaler["metadata"]["namespace"], scaler["metadata"]["name"]
        for one in owners.get((namespace, aim["kind"], aim["name"]), ()):
            why = f"HorizontalPodAutoscaler {namespace}/{name} scales the same {aim['kind']}"
            other = quote(_controller(scaler) or f"hpa/{name}")
            remedy = f"kubectl delete {other} --namespace {namespace}"
            if _recommends(one):
                why += ", while this service only recommends"
                yield note(
                    StatusReason.AUTOSCALER_CONFLICT,
                    subject(one),
                    why,
                    f"nothing to do; before you set spec.scaling.mode to Auto: {remedy}",
                )
            else:
                yield problem(StatusReason.AUTOSCALER_CONFLICT, subject(one), why, remedy)
    claims = TargetOwners()
    for one in facts.services:
        claims.saw(one)
    for (namespace, kind, name), services in owners.items():
        writers = [one for one in services if not _recommends(one)]
        for one in writers:
            if first := claims.other_owner(uid(one)):
                yield problem(
                    StatusReason.TARGET_ALREADY_MANAGED,
                    subject(one),
                    f"InferenceService {namespace}/{first} scales {kind} {name} and has precedence",
                    "delete one of the two InferenceServices",
                )
        for one in services if writers else ():
            if _recommends(one):
                yield note(
                    StatusReason.TARGET_ALREADY_MANAGED,
                    subject(one),
                    f"InferenceService {subject(writers[0])} scales {kind} {name}, while this "
                    "service only recommends",
                    "nothing to do; before you set spec.scaling.mode to Auto, delete the other one",
                )


def nothing_is_paused(facts: Facts) -> Iterator[Diagnosis]:
    """Find paused rollouts and services that only recommend."""
    for one in facts.services:
        workload = facts.targets.get(uid(one))
        if workload and workload.get("spec", {}).get("paused"):
            kind = str(workload.get("kind", "Deployment")).lower()
            name = f"{kind}/{workload['metadata']['name']}"
            yield problem(
                StatusReason.WORKLOAD_PAUSED,
                subject(one),
                f"the rollout of {name} is paused: changes of its template do not reach its pods",
                f"kubectl rollout resume {name} --namespace {one['metadata']['namespace']}",
            )
        if _recommends(one):
            yield warning(
                StatusReason.RECOMMEND_ONLY,
                subject(one),
                "scaling.mode is Recommend: decisions are in the status, and are not written",
                "to write decisions, set spec.scaling.mode to Auto",
            )


def accelerators_are_as_claimed(facts: Facts) -> Iterator[Diagnosis]:
    """Find pod templates that request other accelerators than spec.accelerator claims."""
    for one in facts.services:
        try:
            service = InferenceService.parse(one)
        except InvalidSpec:
            continue
        held = accelerators.of_stored(one["spec"])
        if service.spec.target_ref is not None:
            template = ((facts.targets.get(uid(one)) or {}).get("spec") or {}).get("template")
            if not isinstance(template, dict):
                continue
            held = accelerators.of_template(template)
        if difference := accelerators.difference(service, held):
            yield warning(
                StatusReason.ACCELERATORS_DIFFER,
                subject(one),
                difference,
                "set spec.accelerator to what the pod template requests",
            )


def _recommends(one: Manifest) -> bool:
    return (one["spec"].get("scaling") or {}).get("mode") == "Recommend"


def _workload(one: Manifest) -> tuple[str, str, str]:
    named = one["spec"].get("targetRef") or {}
    metadata = one["metadata"]
    kind, name = named.get("kind", "Deployment"), named.get("name", metadata["name"])
    return metadata["namespace"], kind, name


def _controller(scaler: Manifest) -> str:
    """Return the owner of the HPA, such as KEDA's ScaledObject, which would create it again."""
    for owner in scaler["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner['kind'].lower()}/{owner['name']}"
    return ""
