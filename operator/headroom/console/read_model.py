"""What the pages are made of: the objects as they are stored, and what was seen of each since.

A process that does not lead sees no evaluations, but knows the objects: it shows those.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from headroom.console.history import History
from headroom.console.standing import Standing, by_attention, standing
from headroom.controller.report.evaluation import Evaluation

_log = logging.getLogger(__name__)

Objects = Callable[[], Iterable[dict[str, Any]]]
"""Gives the InferenceServices as last seen."""


ALL_WHOLE = 200
"""Up to so many services the last evaluation of each is kept. It has 20 kB, most of them the state
before it: of more services that is kept of those alone whose page is looked at."""
LOOKED_AT = 40
"""Evaluations of a service that are kept after a look at its page: 10 min of a thousand services.
The first look finds one with the next evaluation."""


@dataclass(slots=True)
class Seen:
    """One service as this process has evaluated it."""

    uid: str = ""
    history: History = field(default_factory=History)
    last: Evaluation | None = None
    looked_at: int = 0
    """Evaluations that are still to be kept since somebody looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One service with everything that is known of it."""

    standing: Standing
    seen: Seen | None


class ReadModel:
    """Takes in evaluations, gives what pages show. Use it on one event loop."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._seen: dict[tuple[str, str], Seen] = {}
        self._read: dict[str, tuple[str, Standing]] = {}
        """By UID, with the resourceVersion that it was read at: few change between two pages."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """Keep an evaluation, and add it to the history. Never raises: the tick goes on."""
        try:
            self._take(evaluation)
        except Exception as error:  # noqa: BLE001  (whatever it is, scaling does not depend on it)
            service = f"{evaluation.service.namespace}/{evaluation.service.name}"
            _log.error("%s is not shown: %s: %s", service, type(error).__name__, error)

    def _take(self, evaluation: Evaluation) -> None:
        service = evaluation.service
        seen = self._seen.get((service.namespace, service.name))
        if seen is None or seen.uid != service.uid:
            seen = self._seen[service.namespace, service.name] = Seen(uid=service.uid)
        seen.last = evaluation if seen.looked_at or len(self._seen) <= ALL_WHOLE else None
        seen.looked_at = max(0, seen.looked_at - 1)
        seen.history.take(evaluation.policy, evaluation.decision, service.spec.accelerator.count)

    def forgotten(self, namespace: str, name: str) -> None:
        """Drop a service that is gone."""
        self._seen.pop((namespace, name), None)

    def subjects(self, namespace: str | None = None) -> list[Subject]:
        """Give the services of a namespace, None for all, the worst first."""
        rows = [self._standing(one) for one in self._objects()]
        if len(self._read) > 2 * len(rows) + 100:
            self._read = {row.uid: self._read[row.uid] for row in rows if row.uid in self._read}
        chosen = [row for row in rows if namespace in (None, row.namespace)]
        return [self._subject(row) for row in by_attention(chosen)]

    def subject(self, namespace: str, name: str) -> Subject | None:
        """Give one service that somebody looks at; None where it is not there."""
        seen = self._seen.get((namespace, name))
        if seen is not None:
            seen.looked_at = LOOKED_AT
        for one in self._objects():
            metadata = one["metadata"]
            if (metadata.get("namespace"), metadata.get("name")) == (namespace, name):
                return self._subject(self._standing(one))
        return None

    def _standing(self, one: dict[str, Any]) -> Standing:
        uid, version = one["metadata"].get("uid", ""), one["metadata"].get("resourceVersion", "")
        known = self._read.get(uid)
        if known is not None and version and known[0] == version:
            return known[1]
        row = standing(one)
        self._read[uid] = (version, row)
        return row

    def _subject(self, row: Standing) -> Subject:
        seen = self._seen.get((row.namespace, row.name))
        if seen is not None and seen.uid != row.uid:
            seen = None
        return Subject(standing=row, seen=seen)
