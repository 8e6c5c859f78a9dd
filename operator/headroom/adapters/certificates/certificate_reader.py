"""Reads certificates and keys in PEM, and checks that they belong together.

What cannot be read, or fits nothing, is None: it is issued again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
)

from headroom.certificates.values import (
    Certificate,
    Leaf,
)


class KeyPair(NamedTuple):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


def read_ca(pair: KeyPair) -> Certificate | None:
    """Read a CA and its key; None where one is missing, malformed or does not fit."""
    one = _parsed(pair.certificate)
    return None if one is None or not (_is_ca(one) and _fits(one, pair.key)) else _value(one)


def read_trusted(certificate: bytes) -> Certificate | None:
    """Read a CA without its key."""
    one = _parsed(certificate)
    return _value(one) if one is not None and _is_ca(one) else None


def read_leaf(pair: KeyPair, bundle: bytes, authorities: Iterable[bytes]) -> Leaf | None:
    """Read a holder's certificate, key and trusted CAs, and find which of the CAs signed it."""
    one = _parsed(pair.certificate)
    if one is None or not _fits(one, pair.key):
        return None
    signers = (ca for pem in authorities if (ca := _parsed(pem)) is not None)
    return Leaf(
        certificate=_value(one),
        signed_by=next((_fingerprint(ca) for ca in signers if _is_signed_by(one, ca)), ""),
        names=_names_of(one),
        trusts=frozenset(_fingerprint(ca) for ca in _all(bundle)),
    )


def _names_of(one: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names of a certificate."""
    try:
        found = one.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return ()
    return tuple(found.value.get_values_for_type(x509.DNSName))


def _parsed(pem: bytes) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        return None


def _all(bundle: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []


def _is_ca(one: x509.Certificate) -> bool:
    try:
        found = one.extensions.get_extension_for_class(x509.BasicConstraints)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False
    return found.value.ca


def _fits(one: x509.Certificate, key: bytes) -> bool:
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        return False
    return bool(private.public_key() == one.public_key())


def _is_signed_by(one: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        one.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _fingerprint(one: x509.Certificate) -> str:
    return one.fingerprint(hashes.SHA256()).hex()


def _value(one: x509.Certificate) -> Certificate:
    return Certificate(
        fingerprint=_fingerprint(one),
        from_s=one.not_valid_before_utc.timestamp(),
        until_s=one.not_valid_after_utc.timestamp(),
    )
