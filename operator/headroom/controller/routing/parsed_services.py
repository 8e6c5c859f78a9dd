"""All services as last parsed, with the learned values of their status."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace

from headroom.api import InferenceService, InvalidSpec
from headroom.api.service_status.status import Status
from headroom.controller.routing.route_builder import Learned
from headroom.controller.services.service_cache import ServiceCache
from headroom.scaling.values.observation import CostModel


@dataclass(slots=True)
class _Parsed:
    generation: int
    service: InferenceService
    status: object = None
    """Status as last read; another object is read again."""
    learned: Learned = field(default_factory=Learned)


class ParsedServices:
    """Services of the cache: one that became invalid is routed as before."""

    def __init__(
        self,
        cache: ServiceCache,
        cost_of: Callable[[str], CostModel | None],
        without: Container[str] = (),
    ) -> None:
        """`without` are namespaces whose services are left out."""
        self._cache = cache
        self._cost_of = cost_of
        self._without = without
        self._parsed: dict[str, _Parsed] = {}

    def by_uid(self) -> dict[str, InferenceService]:
        """Return every service by its UID."""
        return {service.uid: service for service, _ in self}

    def __iter__(self) -> Iterator[tuple[InferenceService, Learned]]:
        """Yield every service that is not being deleted, with its learned values."""
        uids = self._cache.uids()
        for gone in self._parsed.keys() - set(uids):
            del self._parsed[gone]
        for uid in uids:
            raw = self._cache.get(uid)
            if raw is None or raw["metadata"].get("deletionTimestamp"):
                continue
            if raw["metadata"].get("namespace") in self._without:
                continue
            generation, known = raw["metadata"].get("generation", 0), self._parsed.get(uid)
            if known is None or known.generation != generation:
                try:
                    known = _Parsed(generation, InferenceService.parse(raw))
                except InvalidSpec:
                    if known is None:
                        continue
                self._parsed[uid] = known
            if known.status is not raw.get("status"):
                known.status = raw.get("status")
                known.learned = Learned.of(Status.read(known.status))
            exact = self._cost_of(uid)  # what status shows is rounded
            yield known.service, replace(known.learned, cost=exact) if exact else known.learned
