"""Real KEDA, built from its Go module, and Prometheus, run in a local node's network.

KEDA's two programs are those of its release. They run as processes with the administrator's access
instead of as pods; the API server reaches the metrics server through a Service as it would in any
cluster. The HPA that KEDA makes is the one of the real kube-controller-manager.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from cluster import Node, certificates, wait_until
from cluster.addresses import NODE_ADDRESS
from cluster.commands import run
from cluster.content import key_of_files
from cluster.layout import Cache
from cluster.progress import Progress, Silent
from cluster.tools import golang, prometheus
from third_party import aggregated, metrics_api
from third_party.node_program import node_program

MODULE = Path(__file__).with_name("keda_module")
PACKAGE = "github.com/kedacore/keda/v2"
PROGRAMS = ("operator", "adapter")
GROUP = "external.metrics.k8s.io"
SECURE_PORT, GRPC_PORT, PROMETHEUS_PORT = 6444, 9666, 9090
PROMETHEUS_URL = f"http://{NODE_ADDRESS}:{PROMETHEUS_PORT}"
SCRAPE_S = 5
"""Scrape interval of Prometheus; 15 s and more are usual, which would make the peer slower."""
STARTS_WITHIN_S = 60.0
KIND = "scaledobjects.keda.sh"


def ensure(cache: Cache, progress: Progress) -> Path:
    """Build KEDA's programs unless they are there: 3 min cold on two cores, 300 MB."""
    files = sorted(MODULE.iterdir())
    folder = cache.root / "peers" / f"keda-{key_of_files(MODULE, files, {})}"
    go = golang.ensure(cache, progress)
    for name in PROGRAMS:
        if (folder / name).exists():
            continue
        with progress.step(f"Compiling KEDA's {name} (minutes the first time, then kept)"):
            folder.mkdir(parents=True, exist_ok=True)
            partial = folder / f"{name}.partial"
            run(
                [
                    *(go, "build", "-buildvcs=false", "-ldflags", "-s -w"),
                    *("-o", partial, f"{PACKAGE}/cmd/{name}"),
                ],
                what=f"compiling KEDA's {name}",
                cwd=MODULE,
                env={"GOFLAGS": "-mod=readonly"},
            )
            partial.replace(folder / name)
    return folder


@contextlib.contextmanager
def running(node: Node, folder: Path, scratch: Path, progress: Progress) -> Iterator[None]:
    """Run KEDA and Prometheus until the block ends; the metrics API runs already."""
    prometheus.ensure(node.cache, progress)
    server, client = _certificates(scratch)
    _apply_definitions(node)
    aggregated.register(node, GROUP, "v1beta1", SECURE_PORT)
    access = ("--kubeconfig", str(node.layout.inside_kubeconfig))
    with contextlib.ExitStack() as processes:
        for name, words in (
            ("prometheus", _prometheus(node, scratch)),
            (
                "keda-operator",
                [
                    str(folder / "operator"),
                    *access,
                    f"--cert-dir={server}",
                    "--metrics-bind-address=:9080",
                    "--health-probe-bind-address=:9081",
                    f"--metrics-service-bind-address=:{GRPC_PORT}",
                ],
            ),
            (
                "keda-adapter",
                [
                    str(folder / "adapter"),
                    f"--cert-dir={client}",
                    f"--secure-port={SECURE_PORT}",
                    "--port=9082",
                    f"--metrics-service-address=localhost:{GRPC_PORT}",
                    f"--lister-kubeconfig={node.layout.inside_kubeconfig}",
                    f"--authentication-kubeconfig={node.layout.inside_kubeconfig}",
                    f"--authorization-kubeconfig={node.layout.inside_kubeconfig}",
                ],
            ),
        ):
            processes.enter_context(node_program(node, name, words, scratch))
        aggregated.wait(node, GROUP, "v1beta1", STARTS_WITHIN_S)
        yield


def _certificates(scratch: Path) -> tuple[Path, Path]:
    """Write a pair for the operator and one for the metrics server, each with the authority's."""
    now = datetime.now(UTC)
    authority = certificates.authority(now)
    server, client = scratch / "keda-server", scratch / "keda-client"
    for folder, pair in (
        (server, certificates.server(authority, "keda-operator", ("localhost",), now)),
        (client, certificates.client(authority, "keda-metrics-apiserver", "keda", now)),
    ):
        folder.mkdir()
        pair.write(folder, "tls")
        authority.write(folder, "ca")
    return server, client


def _apply_definitions(node: Node) -> None:
    listed = run(
        [golang.ensure(node.cache, Silent()), "list", "-m", "-f", "{{.Dir}}", PACKAGE],
        what="finding KEDA's definitions",
        cwd=MODULE,
        env={"GOFLAGS": "-mod=readonly"},
    )
    folder = Path(listed.strip()) / "config" / "crd" / "bases"
    node.kubectl("apply", "--server-side", "-f", folder)
    wait_until(
        lambda: KIND in node.kubectl("api-resources", "--api-group=keda.sh", "-o", "name"),
        what="KEDA's definitions are served",
        timeout_s=STARTS_WITHIN_S,
        every_s=0.5,
    )


def _prometheus(node: Node, scratch: Path) -> list[str]:
    """Return the command of a Prometheus that scrapes every pod of the server.

    Debian's is built without the discovery of pods, which the metrics API does for it.
    """
    discovery = {
        "url": f"https://{NODE_ADDRESS}:{metrics_api.PORT}{metrics_api.TARGETS}",
        "tls_config": {"insecure_skip_verify": True},
        "refresh_interval": f"{SCRAPE_S}s",
    }
    config = {
        "global": {"scrape_interval": f"{SCRAPE_S}s"},
        "scrape_configs": [
            {
                "job_name": "pods",
                "http_sd_configs": [discovery],
            }
        ],
    }
    file = scratch / "prometheus.yaml"
    file.write_text(json.dumps(config, indent=1))
    return [
        str(prometheus.program(node.cache, "prometheus")),
        f"--config.file={file}",
        f"--storage.tsdb.path={scratch / 'prometheus'}",
        f"--web.listen-address={NODE_ADDRESS}:{PROMETHEUS_PORT}",
        "--query.lookback-delta=15s",
    ]
