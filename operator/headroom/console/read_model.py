"""Data of the pages: the stored objects, and the history of each service's evaluations.

A process that does not lead sees no evaluations, but knows the objects: it shows those.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from headroom.console.history import History
from headroom.console.summary import ServiceSummary, by_attention, summarize
from headroom.controller.report.evaluation import Evaluation

_log = logging.getLogger(__name__)

Objects = Callable[[], Iterable[dict[str, Any]]]
"""Returns the InferenceServices as last seen."""


ALL_KEPT_UP_TO = 200
"""Up to this many services the last evaluation of each is kept. It has 20 kB, most of them the
state before it. Of more services it is kept only for those whose page is viewed."""
KEPT_AFTER_VIEW = 40
"""Evaluations of a service that are kept after its page was viewed: 10 min of a thousand services.
The first view shows one from the next evaluation on."""


@dataclass(slots=True)
class ServiceHistory:
    """One service as this process has evaluated it."""

    uid: str = ""
    samples: History = field(default_factory=History)
    last: Evaluation | None = None
    to_keep: int = 0
    """Evaluations still to be kept since the last view."""
    per_replica: int | None = None
    """Accelerators of one replica, as last evaluated; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEntry:
    """One service: its summary, and its history if this process evaluates it."""

    summary: ServiceSummary
    history: ServiceHistory | None


class ReadModel:
    """Takes evaluations and returns the values of pages. Use it on one event loop."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._histories: dict[tuple[str, str], ServiceHistory] = {}
        self._summaries: dict[str, tuple[tuple[str, int | None], ServiceSummary]] = {}
        """Summaries by UID, with resourceVersion and accelerators: few change between two pages."""

    def on_decision(self, evaluation: Evaluation) -> None:
        """Keep an evaluation, and add it to the history. Never raises: the tick goes on."""
        try:
            self._keep(evaluation)
        except Exception as error:  # noqa: BLE001  (scaling does not depend on the console)
            service = f"{evaluation.service.namespace}/{evaluation.service.name}"
            _log.error("cannot show %s: %s: %s", service, type(error).__name__, error)

    def _keep(self, evaluation: Evaluation) -> None:
        service = evaluation.service
        history = self._histories.get((service.namespace, service.name))
        if history is None or history.uid != service.uid:
            history = ServiceHistory(uid=service.uid)
            self._histories[service.namespace, service.name] = history
        keep = history.to_keep or len(self._histories) <= ALL_KEPT_UP_TO
        history.last = evaluation if keep else None
        history.to_keep = max(0, history.to_keep - 1)
        history.per_replica = evaluation.accelerators_per_replica
        history.samples.take(
            evaluation.policy, evaluation.decision, evaluation.accelerators_per_replica or 0
        )

    def on_removed(self, namespace: str, name: str) -> None:
        """Drop a deleted service."""
        self._histories.pop((namespace, name), None)

    def entries(self, namespace: str | None = None) -> list[ServiceEntry]:
        """Return the services of a namespace, None for all, the worst first."""
        rows = [self._summary(one) for one in self._objects()]
        if len(self._summaries) > 2 * len(rows) + 100:
            known = self._summaries
            self._summaries = {row.uid: known[row.uid] for row in rows if row.uid in known}
        chosen = [row for row in rows if namespace in (None, row.namespace)]
        return [self._entry(row) for row in by_attention(chosen)]

    def view(self, namespace: str, name: str) -> ServiceEntry | None:
        """Return one service for its page, and keep its next evaluations; None without one."""
        history = self._histories.get((namespace, name))
        if history is not None:
            history.to_keep = KEPT_AFTER_VIEW
        for one in self._objects():
            metadata = one["metadata"]
            if (metadata.get("namespace"), metadata.get("name")) == (namespace, name):
                return self._entry(self._summary(one))
        return None

    def _summary(self, one: dict[str, Any]) -> ServiceSummary:
        metadata = one["metadata"]
        uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
        history = self._histories.get((metadata.get("namespace", ""), metadata.get("name", "")))
        per_replica = None if history is None else history.per_replica
        known = self._summaries.get(uid)
        if known is not None and version and known[0] == (version, per_replica):
            return known[1]
        row = summarize(one, per_replica)
        self._summaries[uid] = ((version, per_replica), row)
        return row

    def _entry(self, row: ServiceSummary) -> ServiceEntry:
        history = self._histories.get((row.namespace, row.name))
        if history is not None and history.uid != row.uid:
            history = None
        return ServiceEntry(summary=row, history=history)
