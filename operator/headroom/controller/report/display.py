"""Shows the result of a tick in metrics, error budget and console; no decision depends on it."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

from headroom.api import InferenceService
from headroom.controller.decide.decide_tick import DecisionInputs, DecisionResult
from headroom.controller.decide.recovery import DecisionFailure
from headroom.controller.gather.pods.pods import ObservedPod
from headroom.controller.ports import Recorder
from headroom.controller.report.error_budget import judged
from headroom.controller.report.evaluation import DecisionListener, Evaluation
from headroom.controller.report.state import ReportState
from headroom.resources.accelerators import Accelerators, counted

_log = logging.getLogger(__name__)


class Display:
    """Passes the results of ticks on."""

    def __init__(self, recorder: Recorder, listener: DecisionListener | None) -> None:
        self._recorder = recorder
        self._listener = listener

    def show(
        self,
        state: ReportState,
        inputs: DecisionInputs,
        decided: DecisionResult,
        pods: Sequence[ObservedPod],
        held: Accelerators | None,
    ) -> None:
        """Update metrics, the error budget and the console; `held`: a replica's accelerators."""
        service, decision = inputs.service, decided.decision
        self._judge(state, inputs, decided)
        self._recorder.decided(service, decision)
        self._recorder.overdue(service, sum(one.held for one in pods))
        self._recorder.gateway_rates(service, decided.after.gateway.rates)
        self._recorder.tokens_measured(
            service, decided.tokens.by_name(), decided.tokens.capacity_factor
        )
        self._recorder.generated(service, decision.generation, decided.after.rates.measurement)
        self._recorder.classes_measured(service, decided.after.state.classes)
        if self._listener is not None:
            self._listener.on_decision(
                Evaluation(
                    service=service,
                    policy=decided.policy,
                    state=decided.before,
                    observation=decided.observation,
                    post_inputs=decided.post_inputs,
                    pods=tuple(pods),
                    decision=decision,
                    accelerators_per_replica=None if held is None else counted(held),
                )
            )

    def _judge(self, state: ReportState, inputs: DecisionInputs, decided: DecisionResult) -> None:
        """Enter into the error budget whether the SLO was met in the minute that has ended."""
        before, known, policy = state.budget, decided.after, inputs.policy
        windows = known.gateway.windows if known.gateway.watched else known.state.windows
        freshness = known.gateway.freshness(decided.decision.signals.freshness)
        if known.state.classes.judgement is not None:  # each class has its own target
            policy = replace(policy, latency_target_s=math.inf)
        missed = any(one.missed for one in decided.tokens.measured)
        now_s = decided.decision.time_s
        state.budget = judged(before, policy, windows, freshness, now_s, tokens_missed=missed)
        kept, late = state.budget.recent_kept & 1, state.budget.recent_missed & 1
        if state.budget is not before and kept | late:
            self._recorder.judged(inputs.service, kept=bool(kept))

    def failed(self, service: InferenceService, failure: DecisionFailure) -> None:
        """Count an exception of the decision; log the first one in a row, and a restart."""
        self._recorder.decision_failed(service, type(failure.error).__name__)
        name = f"{service.namespace}/{service.name}"
        if failure.in_a_row == 1:
            _log.error("%s: the decision failed", name, exc_info=failure.error)
        if failure.restarted:
            words = "%s: what was learned is discarded, because the decision fails: %s"
            _log.warning(words, name, failure.text)

    def hold(self, state: ReportState) -> None:
        """Remove the figures of earlier decisions, which would look current."""
        self._recorder.held(state.namespace, state.name)

    def withdraw(self, state: ReportState) -> None:
        """Remove the metrics of a service: another process decides now."""
        self._recorder.forgotten(state.namespace, state.name)

    def forget(self, state: ReportState) -> None:
        """Remove a deleted service."""
        self.withdraw(state)
        if self._listener is not None:
            self._listener.on_removed(state.namespace, state.name)
