"""The command lines of a cluster's programs."""

from __future__ import annotations

import sys

from cluster.addresses import (
    ADVERTISED_WITHOUT_NODE,
    LOOPBACK,
    NODE_ADDRESS,
    NODE_API_PORT,
    NODE_NAME,
    SERVICE_RANGE,
)
from cluster.layout import Layout
from cluster.plan import Component
from cluster.tools.binaries import Kubernetes


def control_plane(layout: Layout, programs: Kubernetes, port: int) -> tuple[Component, ...]:
    """API server, controllers and scheduler on loopback; pods stay as the test writes them."""
    return (
        _etcd(layout, programs),
        _api_server(
            layout,
            programs,
            bind=LOOPBACK,
            port=port,
            advertise=ADVERTISED_WITHOUT_NODE,
            extra=("--endpoint-reconciler-type=none",),
        ),
        # No kubelet renews a lease here: these two would evict and delete what tests make.
        _controllers(
            layout,
            programs,
            "*,-node-lifecycle-controller,-pod-garbage-collector-controller",
        ),
        _scheduler(layout, programs),
    )


def node(layout: Layout, programs: Kubernetes, listener_fd: int) -> tuple[Component, ...]:
    """The same with a kubelet and all that it needs, in a network of its own."""
    configuration = str(layout.root / "containerd.toml")
    return (
        Component("containerd", ("containerd", "--config", configuration), needs_api=False),
        _etcd(layout, programs),
        _api_server(
            layout,
            programs,
            bind="0.0.0.0",
            port=NODE_API_PORT,
            advertise=NODE_ADDRESS,
            extra=(
                f"--kubelet-client-certificate={layout.certificates}/api-client.crt",
                f"--kubelet-client-key={layout.certificates}/api-client.key",
                "--kubelet-preferred-address-types=InternalIP",
            ),
        ),
        Component(
            "forwarder",
            (
                sys.executable,
                "-m",
                "cluster.forwarding",
                str(listener_fd),
                LOOPBACK,
                str(NODE_API_PORT),
            ),
            needs_api=False,
            takes_listener=True,
        ),
        _controllers(layout, programs, "*"),
        _scheduler(layout, programs),
        _kubelet(layout, programs),
        Component(
            "kube-proxy",
            (programs.component("kube-proxy"), f"--config={layout.root}/proxy.yaml"),
            needs_api=True,
        ),
    )


def _etcd(layout: Layout, programs: Kubernetes) -> Component:
    # Sockets, so that no port is needed. What is advertised must look like host and port, and is
    # never dialled: a single member has no peers, and its clients get its address.
    advertised = f"http://{LOOPBACK}:2380"
    return Component(
        "etcd",
        (
            programs.component("etcd"),
            f"--data-dir={layout.root}/etcd",
            f"--listen-client-urls={_etcd_url(layout)}",
            f"--advertise-client-urls={advertised}",
            f"--listen-peer-urls=unix://{layout.root}/etcd-peers.sock",
            f"--initial-advertise-peer-urls={advertised}",
            f"--initial-cluster=default={advertised}",
            "--unsafe-no-fsync",  # the data does not outlive the cluster
            # Five thousand services write more than the default of 2 GB between two compactions.
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        ),
        needs_api=False,
    )


def _etcd_url(layout: Layout) -> str:
    return f"unix://{layout.root}/etcd.sock"


def _api_server(
    layout: Layout,
    programs: Kubernetes,
    *,
    bind: str,
    port: int,
    advertise: str,
    extra: tuple[str, ...],
) -> Component:
    certs = layout.certificates
    return Component(
        "kube-apiserver",
        (
            programs.component("kube-apiserver"),
            f"--etcd-servers={_etcd_url(layout)}",
            f"--bind-address={bind}",
            f"--secure-port={port}",
            f"--advertise-address={advertise}",
            f"--tls-cert-file={certs}/api.crt",
            f"--tls-private-key-file={certs}/api.key",
            f"--client-ca-file={certs}/ca.crt",
            f"--token-auth-file={layout.root}/tokens.csv",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certs}/service-accounts.key",
            f"--service-account-signing-key-file={certs}/service-accounts.key",
            # The aggregation layer, so that an APIService works.
            f"--requestheader-client-ca-file={certs}/ca.crt",
            "--requestheader-allowed-names=apiserver-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={certs}/api-client.crt",
            f"--proxy-client-key-file={certs}/api-client.key",
            *extra,
        ),
        needs_api=False,
    )


def _controllers(layout: Layout, programs: Kubernetes, which: str) -> Component:
    certs = layout.certificates
    return Component(
        "kube-controller-manager",
        (
            programs.component("kube-controller-manager"),
            f"--kubeconfig={layout.inside_kubeconfig}",
            f"--controllers={which}",
            f"--service-account-private-key-file={certs}/service-accounts.key",
            "--use-service-account-credentials",
            f"--root-ca-file={certs}/ca.crt",
            "--secure-port=0",
            "--leader-elect=false",
            "--node-monitor-period=2s",
            # At the default of 20/s, fetching a token per controller takes 4 s of the start.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ),
        needs_api=True,
    )


def _scheduler(layout: Layout, programs: Kubernetes) -> Component:
    return Component(
        "kube-scheduler",
        (
            programs.component("kube-scheduler"),
            f"--kubeconfig={layout.inside_kubeconfig}",
            "--secure-port=0",
            "--leader-elect=false",
        ),
        needs_api=True,
    )


def _kubelet(layout: Layout, programs: Kubernetes) -> Component:
    return Component(
        "kubelet",
        (
            programs.component("kubelet"),
            f"--config={layout.root}/kubelet.yaml",
            f"--kubeconfig={layout.root}/node.kubeconfig",
            f"--root-dir={layout.root}/kubelet",
            f"--cert-dir={layout.root}/kubelet/pki",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={NODE_ADDRESS}",
        ),
        needs_api=True,
    )
