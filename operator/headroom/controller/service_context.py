"""What the controller remembers of one service between ticks.

Lost with the process, save for what status keeps.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headroom.api import InferenceService, conditions
from headroom.api.conditions import Conditions
from headroom.api.status import Status
from headroom.controller.act.drift import Applied
from headroom.controller.decide.decide_tick import ServiceState
from headroom.controller.decide.overwrite_backoff import Contest
from headroom.controller.decide.token_slo import NO_TOKEN_SLO, TokenSLOController
from headroom.controller.gather.pod_ownership import Lineage
from headroom.controller.ports import Manifest
from headroom.controller.report.error_budget import ErrorBudget
from headroom.controller.report.status_throttle import Said
from headroom.controller.services.interning import Sameness
from headroom.errors import ClusterError
from headroom.resources import desired_children
from headroom.resources.settings import DEFAULTS, Settings
from headroom.scaling import State
from headroom.telemetry.pod_samples import PodSamples

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A manifest that the API server does not take."""

    manifest: Manifest
    error: ClusterError
    since_s: float
    """When it was refused for the first time."""
    at_s: float
    """When it was refused last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A look at the children other than the Deployment."""

    children: tuple[Manifest, ...]
    """As they were wanted."""
    at_s: float
    again_s: float
    """When to look again."""
    trouble: str = ""
    """Why one of them is not as wanted."""
    refused_since_s: float | None = None
    """When one of them was refused for the first time, if one still is."""

    def holds(self, children: tuple[Manifest, ...], now_s: float) -> bool:
        """Whether it is still good enough for these children, as the same tuple."""
        return children is self.children and self.at_s <= now_s < self.again_s


@dataclass(slots=True, kw_only=True)
class Memory:
    """One service's memory, keyed by its UID: a name may come back, a UID does not."""

    uid: str
    namespace: str
    name: str
    learnt: ServiceState
    budget: ErrorBudget
    generation: int
    """Of the object as it was found."""
    status: dict[str, Any]
    """As last written, or as found at the start."""
    said: Said | None = None
    """What status says that somebody acts on; None: not written yet by this process."""
    written_s: float | None = None
    """When status was last written; None: not yet by this process."""
    known_s: float = 0.0
    """When this memory began."""
    service: InferenceService | None = None
    """The spec as last parsed; good for its generation."""
    children: tuple[Manifest, ...] = ()
    applied: dict[str, Applied] = field(default_factory=dict)
    """By kind of child."""
    accepted: Manifest | None = None
    """The Deployment that the API server took in a dry run."""
    refused: Refusal | None = None
    children_checked: Checked | None = None
    children_due_s: float | None = None
    """Until when a new process may leave what an earlier one found in order."""
    lineage: Lineage = field(default_factory=Lineage)
    contest: Contest = field(default_factory=Contest)
    mode: str = ""
    """scaling.mode at the last tick; empty before the first."""
    samples: PodSamples | None = None
    """The last pages of its pods; None before the first tick."""
    claim: str = ""
    """Who yields accelerators to the service, as last told."""
    marks_again_s: float = 0.0
    """Before, no pod is marked: it was forbidden."""
    events_s: dict[str, float] = field(default_factory=dict)
    """When an event of a reason was last posted."""

    @property
    def conditions(self) -> Conditions:
        """As status says them, or as nobody knows them yet."""
        return conditions.read(self.status) or conditions.pending(self.generation, self.known_s)

    def parse(
        self, raw: Manifest, settings: Settings = DEFAULTS, same: Sameness | None = None
    ) -> InferenceService:
        """Parse the object, once per generation; raise InvalidSpec.

        With `same`, what it has in common with other services is kept once.
        """
        generation = raw["metadata"].get("generation", 0)
        if self.service is None or self.service.generation != generation:
            self.service = None
            service = InferenceService.parse(raw)
            self.service = service if same is None else same.service(service)
            children = desired_children(service, settings)
            self.children = tuple(children if same is None else map(same.json, children))
        return self.service

    def enter(self, mode: str) -> None:
        """Begin every hold anew where the mode is another: a switch by itself scales nothing."""
        if self.mode not in ("", mode):
            anew = State.from_checkpoint(self.learnt.state.to_checkpoint())
            self.learnt = replace(self.learnt, state=anew)
        self.mode = mode

    def replicas_if_absent(self, service: InferenceService) -> int:
        """Replicas of a Deployment that has to be created: what was last decided, else the minimum.

        In Recommend mode decisions are advice, so what last stood counts; in External the wish. The
        first is made also where the minimum is 0: what has never been warm would be found wanting
        by whoever asks first.
        """
        scaling = service.spec.scaling
        if service.spec.replicas is not None:
            return service.spec.replicas
        decision, last = Status.read(self.status).decision, 1
        if decision is not None:
            last = decision.current if scaling.mode == "Recommend" else decision.replicas
        return min(max(last, scaling.min_replicas), scaling.max_replicas)


def remember(raw: Manifest, now_s: float) -> Memory:
    """Begin with what the object's status kept.

    A restart learns nothing anew that was learnt before.
    """
    metadata = raw["metadata"]
    status = dict(raw.get("status") or {})
    state, budget, tokens = _kept(metadata, status)
    return Memory(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        learnt=ServiceState(state=state, tokens=tokens),
        budget=budget,
        known_s=now_s,
        generation=metadata.get("generation", 0),
        status=status,
    )


def _kept(
    metadata: Mapping[str, Any], status: Mapping[str, Any]
) -> tuple[State, ErrorBudget, TokenSLOController]:
    """Read the checkpoint; what cannot be read begins anew, each part by itself."""
    checkpoint = Status.read(status).memory
    state, budget, tokens = State.initial(), ErrorBudget(), NO_TOKEN_SLO
    if checkpoint is None:
        return state, budget, tokens
    service = f"{metadata['namespace']}/{metadata['name']}"
    try:
        if not isinstance(checkpoint, Mapping):
            raise ValueError(f"checkpoint must be an object, not {checkpoint!r:.80}")
        state = State.from_checkpoint(checkpoint)
    except ValueError as error:
        _log.warning("%s: starting without memory: %s", service, error)
    try:
        if isinstance(checkpoint, Mapping) and "errorBudget" in checkpoint:
            budget = ErrorBudget.from_checkpoint(checkpoint["errorBudget"])
    except ValueError as error:
        _log.warning("%s: starting with a whole error budget: %s", service, error)
    try:
        if isinstance(checkpoint, Mapping):
            tokens = TokenSLOController.from_checkpoint(checkpoint)
    except ValueError as error:
        _log.warning("%s: starting without room for tokens: %s", service, error)
    return state, budget, tokens
