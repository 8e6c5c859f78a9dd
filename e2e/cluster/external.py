"""The cluster of `KUBECONFIG`, which is neither started nor stopped here."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from cluster.errors import ClusterError, NotPossibleError
from cluster.interface import Cluster
from cluster.layout import Cache
from cluster.tools import binaries


class ExternalCluster(Cluster):
    """The same interface on any cluster; what it holds stays when the block ends."""

    def __init__(self) -> None:
        configured = os.environ.get("KUBECONFIG", "")
        if not configured:
            raise ClusterError("no cluster is configured. Set KUBECONFIG to its kubeconfig file.")
        path = Path(configured)
        if not path.is_file():
            raise ClusterError(f"KUBECONFIG must name a file; got {configured}.")
        built = binaries.kubernetes(Cache.of_this_user())
        program = shutil.which("kubectl") or built.component("kubectl")
        if not Path(program).exists():
            raise ClusterError(
                "kubectl is not on the PATH. Install it, or build it with "
                "`python -m cluster setup --control-plane-only`."
            )
        scratch = Path(tempfile.mkdtemp(prefix="headroom-external-"))
        super().__init__("external", path, program, scratch)

    def __enter__(self) -> Self:
        """Check that it answers."""
        try:
            self.kubectl("get", "--raw", "/readyz", timeout_s=20)
        except ClusterError as error:
            self.end()
            raise ClusterError(
                f"the cluster that KUBECONFIG ({self.kubeconfig}) names does not answer: {error}"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave it as it is."""
        self.end()

    def end(self) -> None:
        """Forget what was written here about it; the cluster itself stays as it is."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def has_node(self) -> bool:
        """It is taken to run pods."""
        return True

    def load(self, image: str) -> None:
        """Say how an image gets there: every kind of cluster has its own way.

        Raises:
            NotPossibleError: always.
        """
        raise NotPossibleError(
            f"an image must be loaded into an external cluster by other means: push {image} to a "
            f"registry that it pulls from, or load it (`kind load docker-image {image}`), and name "
            "it in the manifests."
        )
