"""Prepares a node's namespaces, so that none of its changes reach the host."""

from __future__ import annotations

from pathlib import Path

from cluster.addresses import NODE_ADDRESS
from cluster.commands import run
from cluster.layout import HIDDEN_INSIDE

KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
}
"""Wanted by the kubelet, which would set them for the whole machine: it is shown these instead."""


def isolate(state: Path) -> None:
    """Cover shared folders and kernel settings, and make the node's network."""
    for folder in HIDDEN_INSIDE:
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(folder))
    masks = state / "masks"
    masks.mkdir()
    for setting, value in KERNEL_SETTINGS.items():
        mask = masks / setting.replace("/", "_")
        mask.write_text(f"{value}\n")
        _run("mount", "--bind", str(mask), f"/proc/sys/{setting}")
    _network()


def _network() -> None:
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "node0", "type", "veth", "peer", "name", "node1")
    _run("ip", "link", "set", "node1", "up")
    _run("ip", "address", "add", f"{NODE_ADDRESS}/24", "dev", "node0")
    _run("ip", "link", "set", "node0", "up")
    _run("ip", "route", "add", "default", "dev", "node0")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _run(*argv: str) -> None:
    run(argv, what="isolating the node")
