"""What warms pods of other servers, put together over its adapters."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.adapters.kubernetes_api import KubernetesApi
from headroom.adapters.pod_requester import PodRequester
from headroom.adapters.pod_watch import PodWatch
from headroom.controller.warmup import Warmth
from headroom.resources.names import WARMED_LABEL


def composed(api: KubernetesApi, requester: PodRequester, namespaces: Sequence[str]) -> Warmth:
    """Build what sends, and a watch of each namespace; none named means one of all."""
    watched = tuple(namespaces) or (None,)
    return Warmth(
        requester=requester,
        watches=[PodWatch(api, selector=WARMED_LABEL, namespace=one) for one in watched],
    )
