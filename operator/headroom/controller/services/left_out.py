"""The services that lists left out because they are too large to be read. No I/O.

Any tenant can make one: of an object of 1.5 MB the API server may write six times as much. It stays
as it was last known, and the services of all others are read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from headroom.controller.ports import Manifest

_log = logging.getLogger(__name__)

_REMEDY = (
    "it is too large to be read, so it stays as it was last known; make it smaller, such as by "
    "putting texts of its podTemplate into a ConfigMap"
)

Names = Collection[tuple[str, str]]
"""Namespaces and names."""


class LeftOut:
    """Those of the last list of each scope."""

    def __init__(self, on_change: Callable[[Names], None]) -> None:
        self._on_change = on_change
        self._by_scope: dict[str | None, frozenset[tuple[str, str]]] = {}

    def of(self, scope: str | None, services: Sequence[Manifest]) -> frozenset[str]:
        """Note services that a list leaves out; return their UIDs, empty without a name."""
        named = [one["metadata"] for one in services]
        names = frozenset((one.get("namespace", ""), one.get("name", "")) for one in named)
        before = self._by_scope.get(scope, frozenset())
        self._by_scope[scope] = names
        for namespace, name in sorted(names - before):
            _log.warning("%s/%s: %s", namespace, name, _REMEDY)
        if names != before:
            self._on_change(sorted(frozenset().union(*self._by_scope.values())))
        return frozenset(one.get("uid", "") for one in named)
