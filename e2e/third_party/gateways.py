"""The shipped gateway on a node that runs the operator alone."""

from __future__ import annotations

from cluster import Node
from cluster.images import shipped
from cluster.layout import Cache
from cluster.progress import Progress
from scenarios.world import OPERATOR, ROOT, SYSTEM

OVERLAY = ROOT / "deploy" / "overlays" / "local-gateway"
GATEWAY = "headroom-gateway"


def start(node: Node, progress: Progress) -> None:
    """Build and install it, and wait until the operator knows it."""
    shipped.build(Cache.of_this_user(), [shipped.GATEWAY], progress)
    node.load(shipped.GATEWAY.image)
    node.kubectl("apply", "--server-side", "--force-conflicts", "-k", OVERLAY)
    for name in (OPERATOR, GATEWAY):
        words = ("rollout", "status", f"deployment/{name}", "--namespace", SYSTEM)
        node.kubectl(*words, "--timeout=90s")
