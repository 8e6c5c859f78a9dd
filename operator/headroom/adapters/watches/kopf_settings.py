"""Settings of kopf: events of one kind only, no writes, its login, short pauses."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any, cast

import kopf


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Pauses after failures of the API."""

    shortest_pause_s: float = 1.0
    longest_pause_s: float = 5.0
    """Maximum delay until the watch resumes once the API answers."""
    back_offs_s: tuple[float, ...] = (1.0, 2.0, 3.0)
    """kopf's own back-offs: short, so that it ends and is restarted. Its default is up to 21 s."""


class _NoDifferences(kopf.DiffBaseStorage):
    """Keeps kopf from copying every object twice for a diff that is not used."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return cast("kopf.BodyEssence", {})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        """Write nothing."""


def kopf_login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    """Log in by KUBECONFIG or ~/.kube/config, or in a pod by its ServiceAccount."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if os.environ.get("KUBECONFIG") or not host:
        return kopf.login_with_kubeconfig(**kwargs)
    account = kopf.login_with_service_account(**kwargs)
    # kopf uses the API server's name, which needs DNS; the environment has the address.
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    bracketed = f"[{host}]" if ":" in host else host
    return account and dataclasses.replace(account, server=f"https://{bracketed}:{port}")


def kopf_settings(patience: Patience) -> kopf.OperatorSettings:
    """Return the settings of a kopf that only watches."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True  # scan Headroom's group once, watch no CRDs and namespaces
    settings.networking.connect_timeout = 5
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = patience.back_offs_s
    settings.watching.reconnect_backoff = patience.shortest_pause_s
    settings.watching.server_timeout = 600
    settings.watching.chunk_size = 100  # a whole list takes five times its JSON in memory
    settings.queueing.idle_timeout = 0.5  # otherwise a failing kopf waits 5 s for other workers
    settings.process.ultimate_exiting_timeout = None  # otherwise it would SIGKILL this process
    # Our handlers write none of these; the names are set so that no other operator's are used.
    settings.persistence.finalizer = "headroom.dev/watch"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="headroom.dev")
    settings.persistence.diffbase_storage = _NoDifferences()
    return settings
