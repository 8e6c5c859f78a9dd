"""Names of full blocks: a digest of a block's tokens and of everything before them. Pure.

Equal names mean equal keys and values. The chain begins with the tenant, so that a tenant never
shares blocks with another one, and response times say nothing about another tenant's prompts.
BLAKE2b, because tokens come from clients: with Python's hash they could construct collisions.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

DIGEST_BYTES = 16


def root(tenant: str) -> bytes:
    """Return the name before the first block."""
    return blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def extend(
    chain: list[bytes], tenant: str, tokens: Sequence[int], block_tokens: int, blocks: int
) -> None:
    """Extend a chain, in which entry i names block i, to this many full blocks."""
    before = chain[-1] if chain else root(tenant)
    for at in range(len(chain) * block_tokens, blocks * block_tokens, block_tokens):
        content = array("q", tokens[at : at + block_tokens]).tobytes()
        before = blake2b(before + content, digest_size=DIGEST_BYTES).digest()
        chain.append(before)
