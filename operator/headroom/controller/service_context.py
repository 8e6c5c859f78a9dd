"""One service between ticks: its parsed spec, its desired children and one state per step.

Lost with the process, except for what status keeps.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headroom.api import InferenceService, InvalidSpec, Problem
from headroom.api.service_status.status import Status
from headroom.controller.act.state import ActState
from headroom.controller.decide.decide_tick import ServiceState
from headroom.controller.decide.state import DecideState
from headroom.controller.decide.token_slo import NO_TOKEN_SLO, TokenSLOController
from headroom.controller.gather.state import GatherState
from headroom.controller.ports import Manifest
from headroom.controller.report.error_budget import ErrorBudget
from headroom.controller.report.state import ReportState
from headroom.controller.services.interning import Interner
from headroom.resources import desired_children
from headroom.resources.rolling_update import RollingUpdate, with_update
from headroom.resources.settings import DEFAULTS, Settings
from headroom.scaling import State

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class ServiceContext:
    """The context of one UID: a name may be used again, a UID is not."""

    decide: DecideState
    report: ReportState
    gather: GatherState = field(default_factory=GatherState)
    act: ActState = field(default_factory=ActState)
    service: InferenceService | None = None
    """The spec as last parsed; valid for its generation."""
    children: tuple[Manifest, ...] = ()
    """The desired child objects, the Deployment last."""

    @property
    def uid(self) -> str:
        """The UID of the InferenceService."""
        return self.report.uid

    def parse(
        self, raw: Manifest, settings: Settings = DEFAULTS, same: Interner | None = None
    ) -> InferenceService:
        """Parse the object, once per generation; raise InvalidSpec.

        With `same`, parts that are equal to those of other services are stored once.
        """
        generation = raw["metadata"].get("generation", 0)
        if self.service is None or self.service.generation != generation:
            self.service = None
            service = InferenceService.parse(raw)
            children = _children(service, settings)
            self.children = tuple(children if same is None else map(same.json, children))
            # last: a spec whose children cannot be built is not in force, in this tick and the next
            self.service = service if same is None else same.service(service)
        return self.service

    def roll(self, update: RollingUpdate) -> None:
        """Have the Deployment replace its pods so, until the next change of the spec."""
        manifest = with_update(self.children[-1], update)
        if manifest is not self.children[-1]:
            self.children = (*self.children[:-1], manifest)

    def workload(self, deployment: Manifest | None) -> Manifest:
        """Return the manifest that the replicas follow; empty for a target that is gone."""
        return self.children[-1] if self.children else deployment or {}

    def restart(self) -> None:
        """Drop everything with a time, as a restart of the operator does: the clock went back.

        Otherwise a sample would be the newest, and a pause last, until the clock is there again.
        """
        self.decide.restart()
        self.gather.samples = None
        self.act = ActState(writer=self.act.writer, accepted=self.act.accepted)

    def initial_replicas(self, service: InferenceService) -> int:
        """Replicas of a Deployment that has to be created: the last decision, else the minimum.

        In Recommend mode decisions are advice, so the last current number counts; in External mode
        spec.replicas. A first replica is created also where the minimum is 0: otherwise the first
        request would find a model that has never started.
        """
        scaling = service.spec.scaling
        if service.spec.replicas is not None:
            return service.spec.replicas
        decision, last = Status.read(self.report.status).decision, 1
        if decision is not None:
            last = decision.current if scaling.mode == "Recommend" else decision.replicas
        return min(max(last, scaling.min_replicas), scaling.max_replicas)

    def checkpoint(self) -> dict[str, object]:
        """Return the checkpoint in status for the next process."""
        known = self.decide.service
        return (
            known.state.to_checkpoint()
            | {"errorBudget": self.report.budget.to_checkpoint()}
            | known.tokens.to_checkpoint()
        )


def restore(raw: Manifest, now_s: float) -> ServiceContext:
    """Return the context from the object's status, so that learned values survive a restart."""
    metadata = raw["metadata"]
    status = dict(raw.get("status") or {})
    state, budget, tokens = _restored(metadata, status)
    return ServiceContext(
        decide=DecideState(service=ServiceState(state=state, tokens=tokens)),
        report=ReportState(
            uid=metadata["uid"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            generation=metadata.get("generation", 0),
            status=status,
            known_s=now_s,
            budget=budget,
        ),
    )


def _children(service: InferenceService, settings: Settings) -> list[Manifest]:
    """Return the child objects; raise InvalidSpec where the pod template has parts of other types.

    The CRD preserves unknown fields below `podTemplate`, so the API server has not checked them.
    """
    try:
        return list(desired_children(service, settings))
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        raise InvalidSpec(
            [
                Problem(
                    field="spec.runtime.podTemplate",
                    rule="must be a pod template, with lists and objects where Kubernetes has them",
                    got=type(error).__name__,
                )
            ]
        ) from error


def _restored(
    metadata: Mapping[str, Any], status: Mapping[str, Any]
) -> tuple[State, ErrorBudget, TokenSLOController]:
    """Read the checkpoint; each part that cannot be read starts empty."""
    state, budget, tokens = State.initial(), ErrorBudget(), NO_TOKEN_SLO
    service = f"{metadata['namespace']}/{metadata['name']}"
    stored = Status.read(status)
    checkpoint = stored.memory
    if checkpoint is None:
        if stored.checkpoint is not None:
            _log.warning("%s: starting without memory: checkpoint must be JSON", service)
        return state, budget, tokens
    if not isinstance(checkpoint, Mapping):
        _log.warning("%s: starting without memory: checkpoint must be an object", service)
        return state, budget, tokens
    try:
        state = State.from_checkpoint(checkpoint)
    except ValueError as error:
        _log.warning("%s: starting without memory: %s", service, error)
    try:
        if "errorBudget" in checkpoint:
            budget = ErrorBudget.from_checkpoint(checkpoint["errorBudget"])
    except ValueError as error:
        _log.warning("%s: starting with a whole error budget: %s", service, error)
    try:
        tokens = TokenSLOController.from_checkpoint(checkpoint)
    except ValueError as error:
        _log.warning("%s: starting with a token capacity factor of 1: %s", service, error)
    return state, budget, tokens
