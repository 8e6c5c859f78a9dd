"""The activator's certificate, read again when the kubelet has renewed its files."""

from __future__ import annotations

import ssl
from pathlib import Path

FILES = ("tls.crt", "tls.key", "ca.crt")


class ClientTls:
    """Verifies the operator by a name, and presents the certificate of a folder."""

    def __init__(self, folder: Path, operator_name: str) -> None:
        self._folder = folder
        self.operator_name = operator_name
        """The DNS name in the operator's certificate; it is reached at an address."""
        self._read: tuple[bytes, ...] = ()
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return the context of the current files; connections of an older one are not reused.

        Raises OSError where they are missing or malformed.
        """
        read = tuple((self._folder / name).read_bytes() for name in FILES)
        if self._context is None or read != self._read:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.load_verify_locations(self._folder / "ca.crt")
            context.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")
            self._context, self._read = context, read
        return self._context
