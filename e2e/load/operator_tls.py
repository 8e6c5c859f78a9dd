"""The operator's end of mutual TLS on loopback, and the files of an activator."""

from __future__ import annotations

import time
from pathlib import Path

from headroom.adapters.certificates.certificate_issuer import new_ca, new_leaf
from headroom.adapters.certificates.server_tls import Identity, ServerTls
from headroom.certificates.values import Role

NAMESPACE = "headroom-system"
ACTIVATOR = Role.ACTIVATOR.dns_name(NAMESPACE)


def issued(folder: Path) -> tuple[ServerTls, list[str]]:
    """Issue the certificates of both; return the operator's end and the activator's options."""
    now_s = time.time()
    ca, tls = new_ca(now_s), ServerTls(time.time)
    operator = Role.OPERATOR.dns_name(NAMESPACE)
    tls.install(Identity(*new_leaf(ca, operator, now_s), ca.certificate))
    files = (*new_leaf(ca, ACTIVATOR, now_s), ca.certificate)
    for name, content in zip(("tls.crt", "tls.key", "ca.crt"), files, strict=True):
        (folder / name).write_bytes(content)
    return tls, [f"--operator-name={operator}", f"--certificate-folder={folder}"]
