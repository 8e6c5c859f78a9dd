"""Certificates: the names that clients use are in them, and they verify against their authority."""

from __future__ import annotations

import ipaddress
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cluster import addresses, certificates

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_addresses_become_ip_entries_and_the_rest_dns_entries() -> None:
    pair = certificates.server(
        certificates.authority(NOW), "kube-apiserver", addresses.SERVER_NAMES, NOW
    )
    names = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address(address)
        for address in (
            addresses.LOOPBACK,
            addresses.NODE_ADDRESS,
            addresses.API_SERVICE_ADDRESS,
        )
    ]
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)


def test_what_the_authority_issued_verifies_against_it() -> None:
    authority = certificates.authority(NOW)
    issued = certificates.client(authority, "someone", "system:masters", NOW).certificate
    issued.verify_directly_issued_by(authority.certificate)
    with pytest.raises(ValueError, match=r"."):
        issued.verify_directly_issued_by(issued)


def test_a_client_certificate_names_user_and_group() -> None:
    pair = certificates.client(certificates.authority(NOW), "someone", "some-group", NOW)
    subject = pair.certificate.subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "someone"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "some-group"
    usage = pair.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_validity_begins_before_now_because_clocks_differ() -> None:
    certificate = certificates.authority(NOW).certificate
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=30)


def test_written_files_load_and_keys_are_private(tmp_path: Path) -> None:
    certificates.write_all(tmp_path, addresses.SERVER_NAMES, datetime.now(UTC))
    for key in tmp_path.glob("*.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "api.crt", tmp_path / "api.key")
    context.load_verify_locations(tmp_path / "ca.crt")
