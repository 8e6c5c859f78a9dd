"""Issues X.509 certificates: keys on P-256, signed with SHA-256."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headroom.adapters.certificates.certificate_reader import KeyPair
from headroom.certificates.values import CA_BACKDATED_S, CA_S, LEAF_BACKDATED_S, LEAF_S


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
