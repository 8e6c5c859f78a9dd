"""Checks of services that generate tokens: promises that no replica keeps, unknown costs, pairs."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.api.durations import Duration
from headroom.api.reasons import StatusReason
from headroom.api.service_status.generation_status import TokenPromiseStatus
from headroom.api.service_status.status_durations import UNBOUNDED
from headroom.cli.commands.doctor.facts import Facts, Manifest, resource, service_status, subject
from headroom.cli.commands.doctor.findings import Diagnosis, note, problem, warning
from headroom.scaling.values.tokens import Binding

_FIELDS = {
    Binding.TIME_PER_OUTPUT_TOKEN: "timePerOutputToken",
    Binding.TIME_TO_FIRST_TOKEN: "timeToFirstToken",
    Binding.LATENCY: "latency",
}
_LOWER = {
    Binding.TIME_PER_OUTPUT_TOKEN: "a faster accelerator, more of them per replica, a quantized or "
    "smaller model, or speculation",
    Binding.TIME_TO_FIRST_TOKEN: "shorter prompts, a prefix cache, or a faster accelerator",
    Binding.LATENCY: "shorter answers, or what lowers the time per output token",
}
_SEND = "send requests of different lengths; the cost is learned from them"
_NOT_EXPOSED = (
    "nothing has to be done: this server does not expose it, so the token SLOs are kept through a "
    "learned capacity factor; operator/guide/GENERATING_SERVERS.md lists servers that do"
)
_EXPOSE = {
    "vllm": "install headroom-vllm-plugin in the server's image and start vLLM with "
    "--enable-logging-iteration-details, or " + _SEND,
    **dict.fromkeys(("trtllm", "tgi", "dynamo", "llamacpp"), _NOT_EXPOSED),
}
"""Step that makes the cost of an iteration known, by profile."""


def promises_are_feasible(facts: Facts) -> Iterator[Diagnosis]:
    """Find promises on tokens that are below the latency of an idle replica."""
    for one in facts.services:
        generation = service_status(one).generation
        for promise in generation.promises if generation is not None else ():
            if _is_below_floor(promise):
                yield _infeasible(one, promise)


def tokens_are_identified(facts: Facts) -> Iterator[Diagnosis]:
    """Find services that are sized by measurement because their cost is not known."""
    for one in facts.services:
        generation = service_status(one).generation
        if generation is None or generation.sized_by == "Model" or not generation.unknown:
            continue
        profile = str((one["spec"].get("runtime") or {}).get("profile", "headroom"))
        unknown = "; ".join(generation.unknown)
        yield note(
            StatusReason.COST_UNKNOWN,
            subject(one),
            f"replicas follow the measured token SLOs, not a model of the engine: {unknown}",
            _EXPOSE.get(profile, _SEND),
        )


def pools_of_a_pair_have_one_priority(facts: Facts) -> Iterator[Diagnosis]:
    """Find decode pools whose prefill pool has another scaling.priority."""
    known = {subject(one): one for one in facts.services}
    for one in facts.services:
        named = (one["spec"].get("prefillRef") or {}).get("name")
        prefill = known.get(f"{one['metadata']['namespace']}/{named}")
        if prefill is None or _priority(prefill) == _priority(one):
            continue
        yield warning(
            StatusReason.PRIORITIES_DIFFER,
            subject(one),
            f"its scaling.priority is {_priority(one)}, and that of its prefill pool {named} is "
            f"{_priority(prefill)}: when accelerators run out, one pool takes replicas from the "
            "other, and both serve less",
            "set the same spec.scaling.priority in both: kubectl edit "
            f"{resource(one)} {resource(prefill)} --namespace {one['metadata']['namespace']}",
        )


def _priority(one: Manifest) -> object:
    return (one["spec"].get("scaling") or {}).get("priority", 0)


def _is_below_floor(promise: TokenPromiseStatus) -> bool:
    if promise.floor is None or promise.floor == UNBOUNDED:
        return promise.floor is not None
    return Duration.parse(promise.floor).seconds > Duration.parse(promise.target).seconds


def _infeasible(one: Manifest, promise: TokenPromiseStatus) -> Diagnosis:
    name = Binding(promise.name)
    remedy = f"raise spec.slo.{_FIELDS[name]}.target above {promise.floor}"
    if promise.floor == UNBOUNDED:
        remedy = "use more memory per replica: a request does not fit"
    return problem(
        StatusReason.SLO_INFEASIBLE,
        subject(one),
        f"{name}: an idle replica needs {promise.floor}, the target is {promise.target}; no number "
        "of replicas keeps it, and none is added for it",
        f"{remedy}; what lowers the time of an idle replica: {_LOWER[name]}",
    )
