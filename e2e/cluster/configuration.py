"""The configuration files of the node's programs, as text."""

from __future__ import annotations

import json
from typing import Any

from cluster.addresses import NODE_ADDRESS, NODE_NAME, POD_RANGE
from cluster.layout import Layout

PAUSE_IMAGE = "localhost/pause:1"
CNI_PROGRAMS = "/usr/lib/cni"


def kubelet(layout: Layout, *, cgroup_v1: bool) -> str:
    """The kubelet's configuration (JSON is YAML)."""
    configuration: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}",
        "enforceNodeAllocatable": ["pods"],
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        "address": NODE_ADDRESS,
        "clusterDomain": "cluster.local",
        "clusterDNS": [NODE_ADDRESS],
        "resolvConf": str(layout.root / "resolv.conf"),
        "podLogsDir": str(layout.pod_logs),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.certificates / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        # Images come by import only: one that was collected could not be pulled again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": "5s",
        "serializeImagePulls": False,
    }
    if cgroup_v1:
        configuration["failCgroupV1"] = False
    return json.dumps(configuration, indent=1)


def proxy(layout: Layout) -> str:
    """The configuration of kube-proxy (JSON is YAML)."""
    return json.dumps(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clientConnection": {"kubeconfig": str(layout.root / "proxy.kubeconfig")},
            "hostnameOverride": NODE_NAME,
            "clusterCIDR": POD_RANGE,
            "bindAddress": NODE_ADDRESS,
            # Zero leaves the connection tracking of the machine as it is.
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        },
        indent=1,
    )


def containerd(root: str, state: str, socket: str, cni: str, snapshotter: str) -> str:
    """The container runtime's configuration (TOML)."""
    return f"""version = 2
root = '{root}'
state = '{state}'
[grpc]
  address = '{socket}'
[plugins.'io.containerd.grpc.v1.cri']
  sandbox_image = '{PAUSE_IMAGE}'
  # Without CAP_SYS_RESOURCE runc fails to lower the score, and no container starts.
  restrict_oom_score_adj = true
[plugins.'io.containerd.grpc.v1.cri'.containerd]
  snapshotter = '{snapshotter}'
[plugins.'io.containerd.grpc.v1.cri'.cni]
  bin_dir = '{CNI_PROGRAMS}'
  conf_dir = '{cni}'
"""


def container_network(data_folder: str) -> str:
    """The CNI configuration: a point-to-point link per pod, nothing leaves the node."""
    ranges = [[{"subnet": POD_RANGE}]]
    plugins: list[dict[str, Any]] = [
        {
            "type": "ptp",
            "ipMasq": False,
            "ipam": {
                "type": "host-local",
                "dataDir": data_folder,
                "ranges": ranges,
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return json.dumps({"cniVersion": "1.0.0", "name": "local", "plugins": plugins}, indent=1)
