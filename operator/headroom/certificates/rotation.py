"""Rotation of certificates: the CA that signs now, and the leaves to renew. Pure.

Whatever is found (nothing, half of it, certificates of a clock that was wrong), the result is valid
now, and the same question asked again has nothing to do. A CA is trusted for a day before it signs,
so that no connection ends when it does. Only where no CA can be used, a new one signs at once: then
gateways and activators connect again once the kubelet has renewed their files.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from headroom.certificates.values import (
    CA_BACKDATED_S,
    LEAF_BACKDATED_S,
    LEAF_S,
    STAGED_S,
    Authorities,
    Certificate,
    Leaf,
    Role,
)


class Source(Enum):
    """Source of the CA of a place."""

    NONE = auto()
    NEW = auto()
    CURRENT = auto()
    STAGED = auto()
    PREVIOUS = auto()


class Places(NamedTuple):
    """Required contents of each place of `headroom-ca`."""

    current: Source
    staged: Source
    previous: Source

    @property
    def is_as_found(self) -> bool:
        """Return whether nothing is issued and nothing moves."""
        return self.current is Source.CURRENT and self.staged in (Source.NONE, Source.STAGED)


class Work(Enum):
    """Required changes of a holder's Secret."""

    NOTHING = auto()
    TRUST = auto()
    """The CAs that it trusts are written; certificate and key stay."""
    ISSUE = auto()


def places(found: Authorities, now_s: float) -> Places:
    """Return the CAs that must exist now."""
    staged = Source.STAGED if _is_valid(found.staged, now_s) else Source.NONE
    previous = Source.PREVIOUS if _is_valid(found.previous, now_s) else Source.NONE
    current = found.current
    if current is None or not current.is_valid(now_s):
        if staged is Source.STAGED:
            return Places(Source.STAGED, Source.NONE, previous)
        return Places(Source.NEW, Source.NONE, previous)
    if found.staged is not None and staged is Source.STAGED:
        issued_s = found.staged.from_s + CA_BACKDATED_S
        if now_s - issued_s >= STAGED_S:
            return Places(Source.STAGED, Source.NONE, Source.CURRENT)
        return Places(Source.CURRENT, Source.STAGED, previous)
    staged = Source.NEW if current.is_due(now_s) else Source.NONE
    return Places(Source.CURRENT, staged, previous)


def work(
    leaves: Mapping[Role, Leaf | None], trusted: frozenset[str], now_s: float, namespace: str
) -> dict[Role, Work]:
    """Return the content of each holder's Secret, where these CAs are trusted."""
    return {role: _work(leaves.get(role), role, trusted, now_s, namespace) for role in Role}


def _work(
    leaf: Leaf | None, role: Role, trusted: frozenset[str], now_s: float, namespace: str
) -> Work:
    if leaf is None:
        return Work.ISSUE
    one = leaf.certificate
    is_ours = leaf.signed_by in trusted and leaf.names == (role.dns_name(namespace),)
    lives_s = one.until_s - one.from_s
    is_short = lives_s <= LEAF_S + LEAF_BACKDATED_S
    if not (is_ours and is_short and one.is_valid(now_s)) or one.is_due(now_s):
        return Work.ISSUE
    return Work.NOTHING if leaf.trusts == trusted else Work.TRUST


def _is_valid(one: Certificate | None, now_s: float) -> bool:
    return one is not None and one.is_valid(now_s)
