"""What the doctor says: what is wrong, with whom, why it is thought so, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

CLUSTER = "cluster"


class Severity(StrEnum):
    """How much it matters."""

    PROBLEM = "problem"
    """A promise cannot be kept, or nothing works."""
    WARNING = "warning"
    """It works, and not as one would expect."""
    NOTE = "note"
    """Worth knowing; nothing has to be done."""


class Finding(StrEnum):
    """What is wrong. Stable words, for programs."""

    OLD_KUBERNETES = "OldKubernetes"
    CRD_MISSING = "CrdMissing"
    CRD_STALE = "CrdStale"
    OPERATOR_MISSING = "OperatorMissing"
    OPERATOR_DOWN = "OperatorDown"
    PERMISSION_MISSING = "PermissionMissing"
    CLOCK_SKEW = "ClockSkew"
    INVALID_SPEC = "InvalidSpec"
    INFEASIBLE_SLO = "InfeasibleSlo"
    NOT_EVALUATED = "NotEvaluated"
    TARGET_MISSING = "TargetMissing"
    AUTOSCALER_CONFLICT = "AutoscalerConflict"
    TARGET_SHARED = "TargetShared"
    PAUSED = "Paused"
    NO_ACCELERATORS = "NoAccelerators"
    TOO_FEW_ACCELERATORS = "TooFewAccelerators"
    WRONG_PORT = "WrongPort"
    WRONG_PROFILE = "WrongProfile"
    NO_METRICS = "NoMetrics"
    PROMETHEUS_UNREACHABLE = "PrometheusUnreachable"
    REPLICAS_BROKEN = "ReplicasBroken"
    WRITE_REFUSED = "WriteRefused"
    AT_MAX_REPLICAS = "AtMaxReplicas"
    NOT_CHECKED = "NotChecked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One finding about one subject."""

    finding: Finding
    severity: Severity
    subject: str
    """`namespace/name` of a service, or of another object, or `cluster`."""
    why: str
    """What was seen."""
    remedy: str
    """What to do next."""


def problem(finding: Finding, subject: str, why: str, remedy: str) -> Diagnosis:
    """Say that something does not work."""
    return Diagnosis(
        finding=finding, severity=Severity.PROBLEM, subject=subject, why=why, remedy=remedy
    )


def warning(finding: Finding, subject: str, why: str, remedy: str) -> Diagnosis:
    """Say that something works otherwise than one would expect."""
    return Diagnosis(
        finding=finding, severity=Severity.WARNING, subject=subject, why=why, remedy=remedy
    )


def note(finding: Finding, subject: str, why: str, remedy: str) -> Diagnosis:
    """Say what is worth knowing."""
    return Diagnosis(
        finding=finding, severity=Severity.NOTE, subject=subject, why=why, remedy=remedy
    )
