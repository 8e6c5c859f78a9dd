"""Names, lifetimes and values of the certificates between gateways, activators and operator."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

HOUR_S = 3600.0
DAY_S = 24.0 * HOUR_S
CA_S = 365.0 * DAY_S
LEAF_S = DAY_S
CA_BACKDATED_S = DAY_S
LEAF_BACKDATED_S = HOUR_S
"""Certificates are valid from before they are issued: clocks of nodes differ, and may step back."""
RENEWED_AT = 2.0 / 3.0
"""Share of its life after which a certificate is renewed: a leaf has 8 h left, a CA 122 days."""
STAGED_S = DAY_S
"""Time for which the next CA is distributed before it signs.

The kubelet updates a mounted Secret within two minutes; a node may be unreachable for hours.
"""

CA_SECRET = "headroom-ca"  # noqa: S105  (the name of an object)


class Role(StrEnum):
    """A holder of a certificate, by the name of its ServiceAccount and pods."""

    OPERATOR = "headroom-operator"
    GATEWAY = "headroom-gateway"
    ACTIVATOR = "headroom-activator"

    @property
    def secret(self) -> str:
        """Return the name of the Secret with its certificate, its key and the trusted CAs."""
        return f"{self.value}-tls"

    def dns_name(self, namespace: str) -> str:
        """Return the name in its certificate; nothing resolves it."""
        return f"{self.value}.{namespace}.svc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate whose private key fits. What cannot be read, or has no key, is None instead."""

    fingerprint: str
    from_s: float
    until_s: float

    def is_valid(self, now_s: float) -> bool:
        """Return whether it is neither expired nor, by a clock that stepped back, of the future."""
        return self.from_s <= now_s < self.until_s

    def is_due(self, now_s: float) -> bool:
        """Return whether it must be renewed by now."""
        return now_s >= self.from_s + RENEWED_AT * (self.until_s - self.from_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """The content of a holder's Secret."""

    certificate: Certificate
    signed_by: str
    """Fingerprint of the CA of `headroom-ca` that signed it; empty if none did."""
    names: tuple[str, ...]
    trusts: frozenset[str]
    """Fingerprints of the CAs in the same Secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorities:
    """The content of `headroom-ca`."""

    current: Certificate | None = None
    """The CA that signs."""
    staged: Certificate | None = None
    """The CA that is trusted already and signs next."""
    previous: Certificate | None = None
    """The CA that signed before; it is trusted as long as it is valid. Its key is deleted."""
