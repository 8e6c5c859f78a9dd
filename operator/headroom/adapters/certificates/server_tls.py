"""Mutual TLS of the operator's servers: the current certificate, and a client's identity.

Each handshake takes the certificate and the CAs that were installed last, so that a renewal needs
no restart. Sessions are never resumed over HTTP, and the certificate of a gRPC client is looked at
again for each stream: a client whose certificate expired is refused.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cryptography import x509


class Identity(NamedTuple):
    """A certificate chain, its key and the CAs that clients are verified with, as PEM."""

    certificate: bytes
    key: bytes
    trusted: bytes


class ServerTls:
    """The operator's end of its connections with gateways and activators."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._identity: Identity | None = None
        self._context: ssl.SSLContext | None = None
        self._installed = asyncio.Event()

    def install(self, identity: Identity) -> None:
        """Use this certificate from the next handshake on. Raises ValueError if it is unusable."""
        if identity != self._identity:
            self._context = _context(identity)
            self._identity = identity
            self._installed.set()

    async def wait(self) -> None:
        """Wait for the first certificate."""
        await self._installed.wait()

    def ssl_context(self) -> ssl.SSLContext:
        """Return a context that follows the certificate; call after `wait`."""
        outer = _empty()

        def follow(connection: Any, _: str | None, __: ssl.SSLContext) -> None:
            connection.context = self._context

        outer.sni_callback = follow
        return outer

    def grpc_credentials(self) -> Any:
        """Return credentials that follow the certificate; call after `wait`."""
        import grpc  # noqa: PLC0415  (30 MB, which only the server for gateways needs)

        def configuration(identity: Identity) -> Any:
            pair = (identity.key, identity.certificate)
            return grpc.ssl_server_certificate_configuration([pair], identity.trusted)

        assert self._identity is not None
        used = self._identity

        def fetch() -> Any:
            nonlocal used
            if self._identity is None or self._identity == used:
                return None  # as before
            used = self._identity
            return configuration(used)

        return grpc.dynamic_ssl_server_credentials(
            configuration(used), fetch, require_client_authentication=True
        )

    def left_s(self, authentication: Mapping[str, Sequence[bytes]], name: str) -> float:
        """Return how long a gRPC client's certificate is valid; 0 if it has not this name."""
        names = [one.decode(errors="replace") for one in authentication.get(_NAMES, ())]
        pem = b"".join(authentication.get(_PEM, ()))
        if name not in names:
            return 0.0
        try:
            until = x509.load_pem_x509_certificate(pem).not_valid_after_utc
        except ValueError:
            return 0.0
        return max(0.0, until.timestamp() - self._now_s())

    def knows(self, peer_certificate: Mapping[str, Any] | None, name: str) -> bool:
        """Return whether an HTTP client's certificate has this name and is still valid."""
        if not peer_certificate or ("DNS", name) not in peer_certificate.get("subjectAltName", ()):
            return False
        return ssl.cert_time_to_seconds(str(peer_certificate["notAfter"])) > self._now_s()


_NAMES, _PEM = "x509_subject_alternative_name", "x509_pem_cert"


def _empty() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0
    return context


def _context(identity: Identity) -> ssl.SSLContext:
    context = _empty()
    try:
        context.load_verify_locations(cadata=identity.trusted.decode("ascii"))
        # The module reads files only: one in memory, so that the key reaches no disk.
        file = os.memfd_create("certificate")
        try:
            os.write(file, identity.certificate + b"\n" + identity.key)
            context.load_cert_chain(f"/proc/self/fd/{file}")
        finally:
            os.close(file)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"the certificate cannot be used: {error}") from error
    return context
