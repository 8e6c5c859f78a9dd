"""Checks of the metrics that a pod answers: port, path, profile and names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headroom.api.reasons import StatusReason
from headroom.api.service_status.conditions import ConditionType
from headroom.cli.commands.doctor.checks.metric_names import PREFIXES, profile_of, required_names
from headroom.cli.commands.doctor.checks.profile_remedy import profile_remedy
from headroom.cli.commands.doctor.checks.prometheus_checks import reads_prometheus
from headroom.cli.commands.doctor.facts import (
    Answered,
    Facts,
    Manifest,
    service_status,
    subject,
    uid,
)
from headroom.cli.commands.doctor.findings import Diagnosis, note, problem

_ENABLE = "enable the server's metrics, or set spec.runtime.profile to the server that runs"
_CUSTOM_PATH = "set spec.runtime.metrics.path to the path at which the server exposes its metrics"
_WHILE_STARTING = (
    "wait while the server starts; if its log says that it serves ({log}), set {field} to the port "
    "on which it exposes its metrics"
)
_WHILE_RESTARTING = (
    "read why it ends ({log}); if the server was stopped while it served, a probe asks another "
    "port: set {field} to the one on which it serves"
)
_SILENT = (
    "if the pod is busy, give it more CPU ({log}); else a NetworkPolicy or a firewall drops "
    "packets to this port, or {field} is wrong"
)
_CLOSED = (
    "if a service mesh requires mutual TLS, exclude port {port} from it (Istio: annotation "
    'traffic.sidecar.istio.io/excludeInboundPorts: "{port}" of the pods; Linkerd: '
    "config.linkerd.io/skip-inbound-ports), or set spec.telemetry.source to Prometheus; if the "
    "server itself expects TLS there, let it expose its metrics on a port without, and set "
    "spec.runtime.metricsPort"
)
_EXIT_CODE = re.compile(r"\w+ \(code \d+\)")
_STOPPED = ("Error (code 137)", "Error (code 143)", "Completed (code 0)")
"""Exit codes of a container that the kubelet stops for its probe; OOMKilled has code 137, too."""
How = Answered.How


def pods_expose_metrics(facts: Facts) -> Iterator[Diagnosis]:
    """Find wrong ports, wrong profiles and missing metrics on the page of one pod."""
    for one in facts.services:
        answer = facts.answers.get(uid(one))
        if answer is not None and not reads_prometheus(one):
            yield from _of_answer(one, answer)


def _of_answer(one: Manifest, answer: Answered) -> Iterator[Diagnosis]:
    where = f"pod {answer.pod}, port {answer.port}, {answer.path}"
    others = [port for port in answer.declared if port != answer.port]
    log = _log(one, answer)
    match answer.how:
        case How.REFUSED | How.SILENT if _starts(one, answer):
            why = f"nothing answers yet at {where}: {answer.detail}"
            yield note(
                StatusReason.WARMING_UP,
                subject(one),
                why,
                _WHILE_STARTING.format(field=_port_field(answer), log=log),
            )
        case How.SILENT:
            why = f"nothing answers at {where}: {answer.detail}"
            remedy = _SILENT.format(field=_port_field(answer), log=log)
            yield problem(StatusReason.METRICS_MISSING, subject(one), why, remedy)
        case How.CLOSED:
            why = f"nothing answers at {where}: {answer.detail}"
            remedy = _CLOSED.format(port=answer.port)
            yield problem(StatusReason.METRICS_MISSING, subject(one), why, remedy)
        case How.REFUSED if _ends(one, answer):
            if _exits(one):
                return
            yield note(
                StatusReason.WRONG_PORT,
                subject(one),
                f"nothing answers at {where}: {answer.detail}; its container restarts",
                _WHILE_RESTARTING.format(field=_port_field(answer), log=f"{log} --previous"),
            )
        case How.REFUSED:
            hint = f"; its containers declare {', '.join(map(str, others))}" if others else ""
            why = f"nothing answers at {where}: {answer.detail}{hint}"
            yield _of_port(one, answer, why)
        case How.NOT_THERE:
            why = f"the server has no metrics at {where}: {answer.detail}"
            custom = _profile(one) == "custom"
            remedy = _CUSTOM_PATH if custom else _ENABLE
            yield problem(StatusReason.METRICS_MISSING, subject(one), why, remedy)
        case How.PAGE:
            yield from _of_page(one, answer, where)
        case How.OTHER:
            why = f"{where} returns no metrics: {answer.detail}"
            remedy = f"read the pod's log: {log}"
            yield problem(StatusReason.METRICS_MISSING, subject(one), why, remedy)


def _of_port(one: Manifest, answer: Answered, why: str) -> Diagnosis:
    """Return which field is wrong where nothing answers; another port may have answered."""
    runtime = one["spec"].get("runtime") or {}
    field = _port_field(answer)
    actual = profile_of(answer.elsewhere_names)
    if actual is None:
        remedy = f"set {field} to the port on which the server exposes its metrics"
        return problem(StatusReason.WRONG_PORT, subject(one), why, remedy)
    profile, port = _profile(one), answer.elsewhere
    why = f"{why}; port {port} has the metrics of {actual}"
    if actual == profile:
        return problem(StatusReason.WRONG_PORT, subject(one), why, f"set {field} to {port}")
    remedy = profile_remedy(runtime, actual, port)
    return problem(StatusReason.WRONG_PROFILE, subject(one), why, remedy)


def _log(one: Manifest, answer: Answered) -> str:
    """Return how to read the server's log; kubectl chooses the container where none is known."""
    container = f" --container {answer.container}" if answer.container else ""
    return f"kubectl logs {answer.pod}{container} --namespace {one['metadata']['namespace']}"


def _port_field(answer: Answered) -> str:
    return "spec.runtime.metricsPort" if answer.own_port else "spec.runtime.port"


def _starts(one: Manifest, answer: Answered) -> bool:
    """Return whether the server may still load: no pod is ready, and no port has metrics."""
    return _waits(one, answer, StatusReason.WARMING_UP)


def _ends(one: Manifest, answer: Answered) -> bool:
    """Return whether the server does not stay up long enough to answer."""
    return _waits(one, answer, StatusReason.REPLICAS_BROKEN)


def _exits(one: Manifest) -> bool:
    """Return whether Ready says why the container ends, and no probe stopped it."""
    code = _EXIT_CODE.search(_why_not_ready(one, StatusReason.REPLICAS_BROKEN))
    return code is not None and code[0] not in _STOPPED


def _waits(one: Manifest, answer: Answered, reason: StatusReason) -> bool:
    waits = bool(_why_not_ready(one, reason))
    return waits and not answer.ready and answer.elsewhere is None


def _why_not_ready(one: Manifest, reason: StatusReason) -> str:
    """Return the message of Ready where it has this reason; empty where it has another."""
    for each in service_status(one).conditions:
        if each.type == ConditionType.READY and each.reason == reason:
            return each.message or reason
    return ""


def _of_page(one: Manifest, answer: Answered, where: str) -> Iterator[Diagnosis]:
    runtime = one["spec"].get("runtime") or {}
    profile = _profile(one)
    if profile == "custom":
        missing = sorted(required_names(runtime.get("metrics")) - answer.names)
        if missing:
            yield problem(
                StatusReason.METRICS_MISSING,
                subject(one),
                f"the page at {where} has no metric {', '.join(missing)}",
                "correct the names in spec.runtime.metrics, or set absentIsZero for a metric that "
                "appears with the first event",
            )
        return
    prefix = PREFIXES.get(profile)
    if prefix is None or any(name.startswith(prefix) for name in answer.names):
        return
    actual = profile_of(answer.names)
    if actual is not None:
        yield problem(
            StatusReason.WRONG_PROFILE,
            subject(one),
            f"the profile is {profile}, and the metrics at {where} are those of {actual}",
            profile_remedy(runtime, actual),
        )
    else:
        why = f"the page at {where} has no metric of profile {profile} ({prefix}...)"
        yield problem(StatusReason.METRICS_MISSING, subject(one), why, _ENABLE)


def _profile(one: Manifest) -> str:
    return str((one["spec"].get("runtime") or {}).get("profile", "headroom"))
