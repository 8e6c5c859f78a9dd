"""Checks of what is measured: who answers on the port, with whose metrics, through which source."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.facts import Answered, Facts, Manifest
from headroom.cli.commands.doctor.findings import Diagnosis, problem
from headroom.cli.commands.doctor.service_checks import condition, subject

PREFIXES = {
    "headroom": "headroom_",
    "vllm": "vllm:",
    "sglang": "sglang:",
    "tgi": "tgi_",
    "tei": "te_",
    "triton": "nv_inference_",
    "ray": "ray_",
    "mlserver": "model_infer_",
    "torchserve": "ts_",
    "mosec": "mosec_",
}
"""How the metrics of each runtime profile begin: whose page it is, whatever the version."""

_PASSING = frozenset({"NoReadyReplicas", "CollectingMetrics", "Pending"})
How = Answered.How


def pods_are_measured(facts: Facts) -> Iterator[Diagnosis]:
    """Ask a pod as the operator does, and tell a wrong port from a wrong profile."""
    for one in facts.services:
        answer = facts.answers.get(str(one["metadata"].get("uid", "")))
        if answer is not None and _source(one) != "Prometheus":
            yield from _of_answer(one, answer)


def prometheus_answers(facts: Facts) -> Iterator[Diagnosis]:
    """What the operator could not read of its Prometheus."""
    for one in facts.services:
        found = condition(one, "MetricsAvailable")
        bad = found.get("status") in ("False", "Unknown") and found.get("reason") not in _PASSING
        if _source(one) == "Prometheus" and bad:
            yield problem(
                StatusReason.PROMETHEUS_UNREACHABLE,
                subject(one),
                f"the signals of its Prometheus are missing: {found.get('message', '')}",
                "see that the source in the operator's settings has the right address and that a "
                "NetworkPolicy lets the operator reach it, or set spec.telemetry.source to Pods",
            )


def _of_answer(one: Manifest, answer: Answered) -> Iterator[Diagnosis]:
    where = f"pod {answer.pod}, port {answer.port}, {answer.path}"
    others = [port for port in answer.declared if port != answer.port]
    match answer.how:
        case How.REFUSED | How.SILENT:
            hint = f"; its containers declare {', '.join(map(str, others))}" if others else ""
            why = f"nothing answers at {where}: {answer.detail}{hint}"
            remedy = "set spec.runtime.port to the port on which the server listens for HTTP"
            yield problem(StatusReason.WRONG_PORT, subject(one), why, remedy)
        case How.NOT_THERE:
            why = f"the server has no metrics at {where}: {answer.detail}"
            yield problem(StatusReason.METRICS_MISSING, subject(one), why, _SWITCH_ON)
        case How.PAGE:
            yield from _of_page(one, answer, where)
        case How.OTHER:
            why = f"{where} gives no page: {answer.detail}"
            within = f"--namespace {one['metadata']['namespace']}"
            remedy = f"see what the pod's log says: kubectl logs {answer.pod} {within}"
            yield problem(StatusReason.METRICS_MISSING, subject(one), why, remedy)


def _of_page(one: Manifest, answer: Answered, where: str) -> Iterator[Diagnosis]:
    profile = str((one["spec"].get("runtime") or {}).get("profile", "headroom"))
    prefix = PREFIXES.get(profile)
    if prefix is None or any(name.startswith(prefix) for name in answer.names):
        return
    whose = profile_of(answer.names)
    if whose is not None:
        yield problem(
            StatusReason.WRONG_PROFILE,
            subject(one),
            f"the profile is {profile}, and the metrics at {where} are those of {whose}",
            f"set spec.runtime.profile to {whose}",
        )
    else:
        why = f"the page at {where} has no metric of profile {profile} ({prefix}...)"
        yield problem(StatusReason.METRICS_MISSING, subject(one), why, _SWITCH_ON)


_SWITCH_ON = "switch the server's metrics on, or set spec.runtime.profile to the server that it is"


def profile_of(names: frozenset[str]) -> str | None:
    """Give the runtime profile whose metrics these are; None where it is none that is known."""
    counts = {
        profile: sum(name.startswith(prefix) for name in names)
        for profile, prefix in PREFIXES.items()
    }
    best = max(counts, key=lambda profile: counts[profile])
    return best if counts[best] else None


def _source(one: Manifest) -> str:
    return str((one["spec"].get("telemetry") or {}).get("source", "Pods"))
