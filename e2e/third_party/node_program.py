"""A program in the node's network, as long as a block runs."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from cluster import ClusterError, Node
from cluster.commands import environment

SHOWN_CHARACTERS = 2000


@contextlib.contextmanager
def node_program(node: Node, name: str, words: Sequence[str], scratch: Path) -> Iterator[None]:
    """Run it with the administrator's access; its log is in `scratch`.

    Raises:
        ClusterError: it ended before the block.
    """
    log = scratch / f"{name}.log"
    inside = ("setpriv", "--pdeathsig", "KILL", *node.enter_command()[:2], "--net")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*inside, *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment(_variables(node)),
        )
    try:
        yield
    except ClusterError as error:
        error.add_note(_tail(log))
        raise
    else:
        if process.poll() is not None:
            raise ClusterError(f"{name} ended early: {_tail(log)}")
    finally:
        process.kill()
        process.wait()


def _variables(node: Node) -> dict[str, str]:
    """Return the access, and that KEDA is to watch all namespaces."""
    access = str(node.layout.inside_kubeconfig)
    own = {"POD_NAMESPACE": "default", "KEDA_CLUSTER_OBJECT_NAMESPACE": "default"}
    return {"KUBECONFIG": access, "WATCH_NAMESPACE": "", **own}


def _tail(log: Path) -> str:
    return f"{log.name}: {log.read_text(errors='replace')[-SHOWN_CHARACTERS:]}"
