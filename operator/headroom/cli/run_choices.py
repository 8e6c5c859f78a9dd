"""What the options of `headroom run` say, as checked values."""

from __future__ import annotations

import ipaddress
import logging
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from headroom.adapters.redaction import redacted

# The log


class LogLevel(StrEnum):
    """The least severe messages that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """Return the level as the logging module counts it."""
        return logging.getLevelNamesMapping()[self.name]


# The console

CONSOLE_ADDRESS = "127.0.0.1"
CONSOLE_PORT = 8081


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleChoice:
    """Where the console listens."""

    address: str = CONSOLE_ADDRESS
    port: int = CONSOLE_PORT

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine, or this pod, can reach it."""
        return ipaddress.ip_address(self.address).is_loopback


def console_choice(enabled: bool, address: str, port: int) -> ConsoleChoice | None:
    """Return where the console listens, or None; raise ValueError for an invalid address."""
    if not enabled:
        return None
    try:
        ipaddress.ip_address(address)
    except ValueError:
        rule = "must be an IP address, such as 127.0.0.1 or 0.0.0.0"
        raise ValueError(f"the console's address {rule}; got {address!r:.60}") from None
    return ConsoleChoice(address=address, port=port)


# Gateways and activators

XDS_PORT = 18000
PORTS, PORTS_PER_NAMESPACE = 10_000, 1_000
ACTIVATOR_PORT = 18001


class CertificateIssuer(StrEnum):
    """Who issues the certificates of operator, gateways and activators."""

    OPERATOR = "operator"
    SECRET = "secret"  # noqa: S105  (the operator only reads the Secret)


@dataclass(frozen=True, slots=True)
class GatewayChoice:
    """Where the gateways are, and the ports that gateways and activators connect to."""

    namespace: str
    port: int = XDS_PORT
    activator_port: int = ACTIVATOR_PORT
    ports_per_namespace: int = PORTS_PER_NAMESPACE
    certificates: CertificateIssuer = CertificateIssuer.OPERATOR
    reviews_tokens: bool = True


# Leadership

LEASE_NAMESPACE = "headroom-system"
LEASE_NAME = "headroom-operator"
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseChoice:
    """A Lease, and the identity of this candidate."""

    namespace: str
    name: str
    identity: str


def lease_choice(
    namespace: str | None, name: str, instance: str, own_namespace: Path = _OWN_NAMESPACE
) -> LeaseChoice:
    """Return the Lease; without a namespace, the pod's own or the default.

    A restarted container keeps its name, so the identity has a random part.
    """
    return LeaseChoice(
        namespace=namespace or _read(own_namespace) or LEASE_NAMESPACE,
        name=name,
        identity=f"{instance}_{uuid.uuid4()}",
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


# Prometheus


def prometheus_sources(given: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the URLs of NAME=URL pairs by name; raise ValueError with the rule and the value."""
    from headroom.api.telemetry_source import SOURCE_NAME  # noqa: PLC0415  (help needs no schema)

    urls: dict[str, tuple[str, ...]] = {}
    for one in given:
        name, separator, url = one.partition("=")
        if not separator or re.fullmatch(SOURCE_NAME, name) is None:
            rule = "must be NAME=URL, with a name of lower-case letters, digits and -"
            raise ValueError(f"a Prometheus {rule}; got {redacted(one)!r}")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "the URL of a Prometheus must begin with http:// or https://; "
                f"got {redacted(url)!r}"
            )
        if parts.query or parts.fragment or parts.username is not None:
            rule = "must have only scheme, host, port and path: no credentials, query or fragment"
            raise ValueError(f"the URL of a Prometheus {rule}; got one of them for {name!r}")
        urls[name] = (*urls.get(name, ()), url)
    return urls
