"""Certificates of gateways, activators and operator on a cluster, and clients that have some."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Mapping
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from cluster import Cluster
from cluster.interface import Endpoint
from headroom.gateway.activator_messages import Report, report_body
from scenarios.world import OPERATOR, SYSTEM

ELSEWHERE = "203.0.113.9"
"""An address to which no held request may be sent."""


def secret(cluster: Cluster, name: str) -> Mapping[str, bytes]:
    """Read the data of a Secret."""
    found = cluster.raw.ask("GET", f"/api/v1/namespaces/{SYSTEM}/secrets/{name}")
    return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}


def token(cluster: Cluster, account: str) -> str:
    """Issue a token as that account's pods have it, for the operator."""
    words = ("create", "token", account, "--audience", "headroom-operator", "--namespace", SYSTEM)
    return cluster.kubectl(*words).strip()


def context(trusted: bytes, pair: Mapping[str, bytes] | None = None) -> ssl.SSLContext:
    """Trust these CAs, and present the certificate of a Secret if one is given."""
    made = ssl.create_default_context(cadata=trusted.decode())
    made.check_hostname = False  # the server's name is not that of the forwarder's address
    if pair is not None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("tls.crt", "tls.key"):
                (Path(folder) / name).write_bytes(pair[name])
            made.load_cert_chain(Path(folder) / "tls.crt", Path(folder) / "tls.key")
    return made


def held(endpoint: Endpoint, bearer: str, with_context: ssl.SSLContext) -> int:
    """Report held requests as an activator does; return the status, 0 without an answer."""
    connection = HTTPSConnection(endpoint.host, endpoint.port, timeout=10, context=with_context)
    body = report_body(Report(address=ELSEWHERE))
    try:
        connection.request("POST", "/v1/held", body, {"Authorization": f"Bearer {bearer}"})
        return connection.getresponse().status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


def replace_all(cluster: Cluster) -> None:
    """Have a new CA sign everything at once: its Secret is emptied, and the operator restarts."""
    gone = '[{"op": "remove", "path": "/data"}]'
    scope = ("--namespace", SYSTEM)
    cluster.kubectl("patch", "secret", "headroom-ca", "--type=json", "-p", gone, *scope)
    cluster.kubectl("rollout", "restart", f"deployment/{OPERATOR}", *scope)
    cluster.kubectl("rollout", "status", f"deployment/{OPERATOR}", *scope, "--timeout=90s")
