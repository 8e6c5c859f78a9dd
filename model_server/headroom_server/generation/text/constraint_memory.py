"""The memory of compiled constraints: kept and used ones, by tenant.

Not safe for threads. A tenant may hold as much as is free, the tenants of a client's address three
times that together: whatever one has running, another finds room. An address cannot be chosen; a
tenant's name can, by a client that reaches the server directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from weakref import WeakValueDictionary

from llguidance import LLMatcher

from headroom_server.errors import QueueFullError
from headroom_server.generation.text.constraint_owner import Owner
from headroom_server.scheduling.eviction_order import EvictionOrder

MOST_KEPT = 64
KEPT_BYTES = 64 << 20
"""Constraints kept compiled: clients repeat the same schema."""
IN_USE_BYTES = 256 << 20
"""Memory of different constraints together, kept or of requests that wait or run."""
OF_CLIENT = 3

Name = tuple[str, str]
"""Kind and text of a constraint."""


class CompiledConstraint:
    """A compiled constraint, its memory, and its owner."""

    __slots__ = ("__weakref__", "cost_bytes", "exhausted", "matcher", "owner")

    def __init__(self, matcher: LLMatcher, cost_bytes: int, owner: Owner) -> None:
        self.matcher = matcher
        self.cost_bytes = cost_bytes
        self.owner = owner
        self.exhausted = False
        """Its answers have made as many states as it may have: a further answer would end at
        once."""


class ConstraintMemory:
    """All compiled constraints of one tokenizer."""

    def __init__(self) -> None:
        self._kept: dict[Name, CompiledConstraint] = {}
        self._kept_bytes = 0
        self._order: EvictionOrder[Name] = EvictionOrder(2 * KEPT_BYTES)
        self._in_use: WeakValueDictionary[Name, CompiledConstraint] = WeakValueDictionary()
        self._compiling: Counter[Owner] = Counter()

    def find(self, name: Name) -> CompiledConstraint | None:
        """Return a compiled constraint that further answers may have, and keep it."""
        found = self._in_use.get(name)
        if found is None or found.exhausted:
            return None
        self._keep(name, found)
        return found

    def add(self, name: Name, one: CompiledConstraint) -> None:
        """Add one that was compiled."""
        self._in_use[name] = one
        self._keep(name, one)

    @property
    def bytes(self) -> int:
        """Memory of all different constraints."""
        return sum(size for _, size in self._held())

    def reserve(self, owner: Owner, cost_bytes: int) -> None:
        """Make room for one that is compiled now, until `release`; the owner's kept ones give way.

        Raises:
            QueueFullError: those in use leave too little for this owner.
        """
        while not self._fits(owner, cost_bytes):
            kept = self._order.oldest_of(owner)
            if kept is None:
                raise QueueFullError(
                    "constraints in use take too much memory, those of one tenant at most as much "
                    "as is free; retry",
                    retry_after_s=1,
                )
            self._drop(kept)
        self._compiling[owner] += cost_bytes

    def release(self, owner: Owner, cost_bytes: int) -> None:
        """Give the reserved memory back."""
        self._compiling[owner] -= cost_bytes
        if not self._compiling[owner]:
            del self._compiling[owner]

    def _fits(self, owner: Owner, cost_bytes: int) -> bool:
        held = of_client = own = 0
        for other, size in self._held():
            held += size
            of_client += size if other.client == owner.client else 0
            own += size if other == owner else 0
        free = IN_USE_BYTES - held
        return own + cost_bytes <= free and of_client + cost_bytes <= OF_CLIENT * free

    def _held(self) -> Iterator[tuple[Owner, int]]:
        yield from self._compiling.items()
        for one in list(self._in_use.values()):
            yield one.owner, one.cost_bytes

    def _keep(self, name: Name, one: CompiledConstraint) -> None:
        if self._kept.get(name) is one:
            self._order.use(name)
            return
        if name in self._kept:  # that one is exhausted
            self._drop(name)
        if one.cost_bytes > KEPT_BYTES:
            return
        while len(self._kept) == MOST_KEPT or self._kept_bytes + one.cost_bytes > KEPT_BYTES:
            self._drop(self._order.next_for(one.owner))
        self._kept[name] = one
        self._kept_bytes += one.cost_bytes
        self._order.take(one.owner, _weight(one))
        self._order.keep(name, one.owner)

    def _drop(self, name: Name) -> None:
        one = self._kept.pop(name)
        self._kept_bytes -= one.cost_bytes
        self._order.give_back(self._order.remove(name), _weight(one))


def _weight(one: CompiledConstraint) -> int:
    """Return what a kept one takes of both bounds."""
    return one.cost_bytes + KEPT_BYTES // MOST_KEPT
