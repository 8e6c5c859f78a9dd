"""Checks of the certificates with which gateways and activators connect to the operator."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.api.reasons import StatusReason
from headroom.cli.commands.doctor.facts import Facts
from headroom.cli.commands.doctor.findings import Diagnosis, problem

_WHERE = (
    "read the log of the leading operator, or of the issuer with "
    "gateway.certificates.issuer=secret; kubectl describe secret {name} --namespace {namespace}"
)


def certificates_are_valid(facts: Facts) -> Iterator[Diagnosis]:
    """Find Secrets that are missing, have no certificate with its key, or an expired one."""
    for secret, until_s in facts.certificates.items():
        namespace, _, name = secret.partition("/")
        remedy = _WHERE.format(name=name, namespace=namespace)
        if until_s is None:
            yield problem(
                StatusReason.CERTIFICATE_MISSING,
                secret,
                "the Secret has no certificate with its key and trusted CAs: gateways and "
                "activators do not start, or do not connect to the operator",
                remedy,
            )
        elif facts.now_s is not None and until_s <= facts.now_s:
            yield problem(
                StatusReason.CERTIFICATE_EXPIRED,
                secret,
                f"the certificate expired {(facts.now_s - until_s) / 3600:.1f} h ago: gateways "
                "keep their last configuration, and activators start no replicas",
                remedy,
            )
