"""Renews the certificates of operator, gateways and activators in their Secrets.

The leader writes; each write carries the version that was read, so that of two leaders one fails.
The CA is written before what it signed. Secrets are neither created nor deleted: the manifests
have them, empty, so that the operator may be restricted to their names.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from headroom.adapters.certificates import certificate_issuer as issuer
from headroom.adapters.certificates.server_tls import Identity
from headroom.certificates import rotation
from headroom.certificates.rotation import Places, Source, Work
from headroom.certificates.values import CA_SECRET, Role
from headroom.errors import ClusterError, NotFound
from headroom.ops.certificate_secrets import (
    BUNDLE,
    CERTIFICATE,
    KEY,
    Data,
    authorities_of,
    ca_data,
    decoded,
    encoded,
    leaf_of,
    pair_of,
    pairs_of,
    placed,
    trusted,
)
from headroom.ops.checks import Check

_log = logging.getLogger(__name__)

AGAIN_AFTER_S = 60.0
UNMET_AGAIN_AFTER_S = 2.0


class Secrets(Protocol):
    """The part of the Kubernetes API that is used; both may raise ClusterError."""

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """Read one object."""
        ...

    async def replace(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        """PUT at the version that was read."""
        ...


class Installs(Protocol):
    """Installs the operator's own certificate."""

    def install(self, identity: Identity) -> None:
        """Use it; raise ValueError if it cannot be used."""
        ...


class CertificateKeeper:
    """Renews certificates, or only reads the operator's where another issuer writes them."""

    def __init__(
        self,
        secrets: Secrets,
        installs: Installs,
        now_s: Callable[[], float],
        *,
        namespace: str,
        issues: bool,
        leads: Callable[[], bool],
        known: Callable[[Mapping[str, float]], None] = lambda _: None,
    ) -> None:
        """Call `known` with the ends of the certificates, by Secret, each time they are read."""
        self._known = known
        self._secrets = secrets
        self._installs = installs
        self._now_s = now_s
        self._namespace = namespace
        self._issues = issues
        self._leads = leads
        self._complaint = "not read yet"

    def check(self) -> Check:
        """Return whether the leading operator has a certificate, and can renew all.

        A follower is ready without: the leader may be of a version that issues none.
        """
        return Check("certificates", self._complaint if self._leads() else "")

    async def watch(self) -> None:
        """Renew until cancelled: every 2 s while something is missing, else every 60 s."""
        while True:
            try:
                await self.renew()
                complaint = ""
            except (ClusterError, ValueError) as error:
                complaint = str(error)
            if complaint and complaint != self._complaint:
                _log.warning("certificates: %s", complaint)
            self._complaint = complaint
            await asyncio.sleep(UNMET_AGAIN_AFTER_S if complaint else AGAIN_AFTER_S)

    async def renew(self) -> None:
        """Renew due certificates, and install the operator's.

        Raises ClusterError, and ValueError where a Secret has not what it must have.
        """
        until_s = await self._issue() if self._issues and self._leads() else {}
        data = decoded(await self._read(Role.OPERATOR.secret))
        where = f"the Secret {self._namespace}/{Role.OPERATOR.secret}"
        leaf = leaf_of(data, ())
        name = Role.OPERATOR.dns_name(self._namespace)
        if leaf is None or not leaf.trusts:
            raise ValueError(
                f"{where} must have a certificate in {CERTIFICATE}, its key in {KEY} and the "
                f"trusted CAs in {BUNDLE}: {self._who_writes()}"
            )
        if name not in leaf.names:
            raise ValueError(f"the certificate in {where} must have the DNS name {name}")
        self._known({**until_s, Role.OPERATOR.secret: leaf.certificate.until_s})
        self._installs.install(Identity(*pair_of(data), data[BUNDLE]))
        if not leaf.certificate.is_valid(self._now_s()):
            raise ValueError(
                f"the certificate in {where} is not valid now, so that gateways and activators "
                f"do not connect: {self._who_writes()}"
            )

    def _who_writes(self) -> str:
        if self._issues:
            return "the leading operator writes it; read its log and check the clocks"
        return "its issuer, such as cert-manager, must write it"

    async def _issue(self) -> dict[str, float]:
        """Renew due certificates; return when all expire, by Secret."""
        now_s = self._now_s()
        secret = await self._read(CA_SECRET)
        found = pairs_of(decoded(secret))
        wanted = rotation.places(authorities_of(found), now_s)
        pairs = placed(found, wanted, now_s)
        if not wanted.is_as_found:
            await self._write(secret, ca_data(pairs))
            _log.warning("certificates: %s", _said(wanted))
        bundle = trusted(pairs)
        secrets = {role: await self._read(role.secret) for role in Role}
        leaves = {role: leaf_of(decoded(one), bundle.values()) for role, one in secrets.items()}
        for role, work in rotation.work(leaves, frozenset(bundle), now_s, self._namespace).items():
            if work is Work.NOTHING:
                continue
            pair = pair_of(decoded(secrets[role]))
            if work is Work.ISSUE:
                name = role.dns_name(self._namespace)
                pair = issuer.new_leaf(pairs["current"], name, now_s)
                _log.info("certificates: issued one for %s", name)
            data = {CERTIFICATE: pair.certificate, KEY: pair.key, BUNDLE: b"".join(bundle.values())}
            await self._write(secrets[role], data)
            leaves[role] = leaf_of(data, bundle.values())
        return {role.secret: one.certificate.until_s for role, one in leaves.items() if one}

    async def _read(self, name: str) -> dict[str, Any]:
        try:
            return await self._secrets.get("v1", "Secret", self._namespace, name)
        except NotFound as error:
            again = "apply the manifests or the chart again" if self._issues else self._who_writes()
            raise ValueError(f"the Secret {self._namespace}/{name} must exist: {again}") from error

    async def _write(self, secret: dict[str, Any], data: Data) -> None:
        await self._secrets.replace(encoded(secret, data), field_manager="headroom")


def _said(wanted: Places) -> str:
    if wanted.current is Source.NEW:
        return (
            "a new CA signs at once, because none could be used; gateways and activators "
            "connect again when the kubelet has renewed their files"
        )
    if wanted.current is Source.STAGED:
        return "the next CA signs from now on"
    return "the next CA is distributed, and signs in a day"
