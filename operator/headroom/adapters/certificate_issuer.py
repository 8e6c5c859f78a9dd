"""Reads and issues X.509 certificates: keys on P-256, signed with SHA-256."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headroom.certificates.values import (
    CA_BACKDATED_S,
    CA_S,
    LEAF_BACKDATED_S,
    LEAF_S,
    Certificate,
    Leaf,
)


class KeyPair(NamedTuple):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


def new_ca(now_s: float) -> KeyPair:
    """Issue a CA that signs leaves only."""
    key = ec.generate_private_key(ec.SECP256R1())
    number = x509.random_serial_number()
    # Two CAs are trusted at a time: a name each, so that verifiers find the right one at once.
    name = _named(f"headroom {number:x}"[:60])
    may_sign = x509.KeyUsage(
        key_cert_sign=True, crl_sign=True, **dict.fromkeys(_OTHER_USAGES, False)
    )
    builder = (
        _builder(key, number, now_s - CA_BACKDATED_S, now_s + CA_S)
        .subject_name(name)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(may_sign, critical=True)
    )
    return _signed(builder, key, key)


def new_leaf(ca: KeyPair, dns_name: str, now_s: float) -> KeyPair:
    """Issue a certificate for both ends of a connection; it does not outlive its CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = load_pem_private_key(ca.key, password=None)
    issuer = x509.load_pem_x509_certificate(ca.certificate)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    until_s = min(now_s + LEAF_S, issuer.not_valid_after_utc.timestamp())
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    may_sign = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=False,
        crl_sign=False,
        **dict.fromkeys(_OTHER_USAGES[1:], False),
    )
    builder = (
        _builder(key, x509.random_serial_number(), now_s - LEAF_BACKDATED_S, until_s)
        .subject_name(_named(dns_name.partition(".")[0]))
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(may_sign, critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(dns_name)]), critical=False)
        .add_extension(authority, critical=False)
    )
    return _signed(builder, key, signer)


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
        names=names_of(one),
        trusts=frozenset(_fingerprint(ca) for ca in _all(bundle)),
    )


def names_of(one: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names of a certificate."""
    try:
        found = one.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return ()
    return tuple(found.value.get_values_for_type(x509.DNSName))


_OTHER_USAGES: Sequence[str] = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "encipher_only",
    "decipher_only",
)


def _builder(
    key: ec.EllipticCurvePrivateKey, number: int, from_s: float, until_s: float
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .public_key(key.public_key())
        .serial_number(number)
        .not_valid_before(dt.datetime.fromtimestamp(int(from_s), dt.UTC))
        .not_valid_after(dt.datetime.fromtimestamp(int(until_s), dt.UTC))
        .add_extension(identifier, critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> KeyPair:
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM), plain)


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


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
