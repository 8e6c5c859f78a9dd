"""The interface of every cluster for tests, scenarios and the demo."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cluster import access
from cluster.addresses import LOOPBACK
from cluster.commands import environment, run
from cluster.errors import ClusterError
from cluster.raw import Raw
from free_ports import free_port

KUBECTL_PATIENCE_S = 120.0
FORWARD_PATIENCE_S = 15.0


@dataclass(frozen=True)
class Endpoint:
    """An address on this machine that leads into the cluster."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Return the HTTP address, without a slash at the end."""
        return f"http://{self.host}:{self.port}"


class Cluster(ABC):
    """A running cluster and the administrator's access to it."""

    def __init__(self, name: str, kubeconfig: Path, kubectl_program: str, scratch: Path) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        self._kubectl_program = kubectl_program
        self._scratch = scratch

    def kubectl(
        self,
        *arguments: str | Path,
        stdin: str | None = None,
        timeout_s: float = KUBECTL_PATIENCE_S,
    ) -> str:
        """Run kubectl as administrator and return what it printed.

        Raises:
            ClusterError: kubectl failed; the message holds what it said.
        """
        return run(
            [self._kubectl_program, *arguments],
            what=f"kubectl {' '.join(str(argument) for argument in arguments[:4])}",
            env=self.kubectl_environment(),
            stdin=stdin,
            timeout_s=timeout_s,
        )

    def get(self, *arguments: str) -> Any:
        """`kubectl get ... -o json`, parsed."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    @cached_property
    def raw(self) -> Raw:
        """Return a client for frequent requests: each kubectl costs 0.2 s of CPU."""
        return Raw(self.kubeconfig)

    def apply(self, *manifests: dict[str, Any]) -> str:
        """Apply manifests on the server's side."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        return self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(items))

    def create_namespace(self, name: str) -> None:
        """Make a namespace that pods can be created in: with its default service account."""
        self.raw.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self._wait_for_account(name)

    def delete_namespace(self, name: str) -> None:
        """Begin its deletion, and wait for nothing."""
        self.raw.ask("DELETE", f"/api/v1/namespaces/{name}")

    def _wait_for_account(self, namespace: str) -> None:
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"

        def there() -> bool:
            found = self.raw.ask("GET", accounts)["items"]
            return any(one["metadata"]["name"] == "default" for one in found)

        wait_until(there, what=f"the default account of {namespace}", timeout_s=30.0)

    def kubectl_environment(self) -> dict[str, str]:
        """The environment in which kubectl connects to this cluster and to no other."""
        return {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self._scratch / "kubectl")}

    def service_account_kubeconfig(self, namespace: str, account: str) -> Path:
        """A kubeconfig with a service account's own rights, to run its program outside a pod."""
        token = self.kubectl(
            *("create", "token", account, "--namespace", namespace, "--duration=1h")
        ).strip()
        path = self._scratch / f"{namespace}.{account}.kubeconfig"
        access.write_private(path, access.with_token(self._flat_kubeconfig(), token, namespace))
        return path

    def forward(
        self, target: str, port: int, namespace: str = "default"
    ) -> AbstractContextManager[Endpoint]:
        """Reach `target` (`service/NAME`, `pod/NAME`) at `port` for as long as the block runs."""
        return self._forward_through_api(target, port, namespace)

    @property
    @abstractmethod
    def has_node(self) -> bool:
        """Return whether pods run here; otherwise a test writes their status itself."""

    @abstractmethod
    def load(self, image: str) -> None:
        """Make an image that was built on this machine available to pods.

        Raises:
            ClusterError: it was not built, or this cluster takes no images this way.
        """

    def _flat_kubeconfig(self) -> str:
        return self.kubectl("config", "view", "--raw", "--flatten", "--minify")

    @contextlib.contextmanager
    def _forward_through_api(self, target: str, port: int, namespace: str) -> Iterator[Endpoint]:
        local = free_port()
        words = ["port-forward", "--namespace", namespace, "--address", LOOPBACK]
        process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", self._kubectl_program),
                *words,
                target,
                f"{local}:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(self.kubectl_environment()),
            text=True,
        )
        try:
            assert process.stdout is not None
            if not process.stdout.readline().startswith("Forwarding"):
                _, said = process.communicate(timeout=FORWARD_PATIENCE_S)
                raise ClusterError(f"no forward to {target}:{port} in {namespace}: {said.strip()}")
            yield Endpoint(LOOPBACK, local)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def wait_until(condition: Any, *, what: str, timeout_s: float, every_s: float = 0.1) -> Any:
    """Call `condition` until it returns something true, and return that.

    Raises:
        ClusterError: it did not within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {timeout_s:g} s")
        time.sleep(every_s)
