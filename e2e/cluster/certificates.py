"""A cluster's certificate authority and the certificates of its components."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY = timedelta(days=30)
CLOCK_SLACK = timedelta(minutes=5)


@dataclass(frozen=True)
class Pair:
    """A private key with the certificate made for it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def write(self, folder: Path, name: str) -> None:
        """Write `name.key` (readable by the owner only) and `name.crt`."""
        write_key(self.key, folder / f"{name}.key")
        pem = self.certificate.public_bytes(serialization.Encoding.PEM)
        (folder / f"{name}.crt").write_bytes(pem)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A P-256 key, which every component of Kubernetes accepts, service account keys included."""
    return ec.generate_private_key(ec.SECP256R1())


def write_key(key: ec.EllipticCurvePrivateKey, path: Path) -> None:
    """Write a private key as PEM, readable by the owner only."""
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_bytes(pem)


def authority(now: datetime) -> Pair:
    """A new self-signed authority."""
    key = new_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "headroom-local-ca")])
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(key, certificate)


def server(ca: Pair, common_name: str, alternative_names: Sequence[str], now: datetime) -> Pair:
    """A serving certificate; addresses among the names become IP entries, the rest DNS entries."""
    names = x509.SubjectAlternativeName([general_name(name) for name in alternative_names])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    return _issue(ca, subject, ExtendedKeyUsageOID.SERVER_AUTH, now, names)


def client(ca: Pair, common_name: str, group: str, now: datetime) -> Pair:
    """A client certificate: Kubernetes reads the user from the common name, the group from O."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )
    return _issue(ca, subject, ExtendedKeyUsageOID.CLIENT_AUTH, now, None)


def general_name(name: str) -> x509.GeneralName:
    """An IP entry for an address, a DNS entry for anything else."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def write_all(folder: Path, alternative_names: Sequence[str], now: datetime) -> None:
    """Write the authority, the API server's pair, its client pair and the service account key."""
    folder.mkdir(parents=True, exist_ok=True)
    ca = authority(now)
    ca.write(folder, "ca")
    server(ca, "kube-apiserver", alternative_names, now).write(folder, "api")
    client(ca, "apiserver-client", "system:masters", now).write(folder, "api-client")
    write_key(new_key(), folder / "service-accounts.key")


def _issue(
    ca: Pair,
    subject: x509.Name,
    usage: x509.ObjectIdentifier,
    now: datetime,
    names: x509.SubjectAlternativeName | None,
) -> Pair:
    key = new_key()
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key())
    builder = (
        _builder(subject, ca.certificate.subject, key, now)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(issuer_id, critical=False)
    )
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return Pair(key, builder.sign(ca.key, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - CLOCK_SLACK)
        .not_valid_after(now.astimezone(UTC) + VALIDITY)
    )
