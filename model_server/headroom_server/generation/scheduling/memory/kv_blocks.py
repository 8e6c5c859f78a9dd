"""The blocks of keys and values: reference counts, and a cache of unreferenced full blocks. Pure.

A block is in exactly one state:

| state      | references | content                                                       |
|------------|------------|---------------------------------------------------------------|
| free       | 0          | none                                                          |
| used       | 1 or more  | of the sequences that hold it; shared ones are full           |
| cached     | 0          | a full block that a later prompt may begin with               |

A block belongs to the tenant that took it; which cached one goes: `scheduling/eviction_order.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headroom_server.scheduling.eviction_order import EvictionOrder


class BlockPool:
    """Block numbers 0 to `total` - 1. `caching`: keep full blocks after their last release."""

    __slots__ = (
        "_by_digest",
        "_cached",
        "_digests",
        "_free",
        "_references",
        "_tenants",
        "caching",
        "total",
    )

    def __init__(self, total: int, *, caching: bool = True) -> None:
        """Raise ValueError without blocks."""
        if total < 1:
            raise ValueError(f"the number of KV blocks must be at least 1; got {total}")
        self.total = total
        self.caching = caching
        self._free = list(range(total - 1, -1, -1))
        self._references = [0] * total
        self._digests: list[bytes | None] = [None] * total
        self._by_digest: dict[bytes, int] = {}
        self._cached: EvictionOrder[int] = EvictionOrder(total)
        """Unreferenced blocks with a digest."""
        self._tenants = [""] * total
        """Tenant of each block that is not free."""

    @property
    def available(self) -> int:
        """Blocks that can be taken now: free and cached."""
        return len(self._free) + len(self._cached)

    @property
    def cached(self) -> int:
        """Blocks that only the cache holds."""
        return len(self._cached)

    @property
    def used(self) -> int:
        """Blocks that sequences hold."""
        return self.total - self.available

    def take(self, tenant: str = "") -> int | None:
        """Return one block with one reference, evicting a cached one if none is free."""
        if self._free:
            block = self._free.pop()
        elif self._cached:
            block = self._cached.next_for(tenant)
            self._cached.give_back(self._cached.remove(block), 1)
            digest = self._digests[block]
            assert digest is not None
            del self._by_digest[digest]
            self._digests[block] = None
        else:
            return None
        self._cached.take(tenant, 1)
        self._tenants[block] = tenant
        self._references[block] = 1
        return block

    def find(self, digest: bytes) -> int | None:
        """Return the block with this content, without a reference."""
        return self._by_digest.get(digest)

    def is_cached(self, block: int) -> bool:
        """Return whether no sequence holds this block, so that sharing it uses an available one."""
        return self._references[block] == 0

    def share(self, blocks: Iterable[int]) -> None:
        """Add a reference to blocks that `find` returned."""
        for block in blocks:
            if not self._references[block]:
                self._cached.remove(block)
            self._references[block] += 1

    def name(self, block: int, digest: bytes) -> None:
        """Record the content of a full block. The first block with a content keeps it."""
        if self.caching and self._digests[block] is None and digest not in self._by_digest:
            self._digests[block] = digest
            self._by_digest[digest] = block

    def release(self, blocks: Sequence[int]) -> None:
        """Drop one reference to each; the end of a prompt is evicted before its beginning."""
        for block in reversed(blocks):
            left = self._references[block] = self._references[block] - 1
            if left:
                assert left > 0, f"block {block} was released twice"
            elif self._digests[block] is None:
                self._free.append(block)
                self._cached.give_back(self._tenants[block], 1)
            else:
                self._cached.keep(block, self._tenants[block])
