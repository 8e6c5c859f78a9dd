"""Next steps by what Kubernetes says of pods that do not start. Pure.

The words are those of kube-scheduler, kubelet and kube-apiserver, Kubernetes 1.30 to 1.36.
"""

from __future__ import annotations

import re

DIAGNOSE = "run kubectl headroom doctor"
"""Next step where the message does not imply one. Without a namespace, that of the context is
examined."""
GATEWAYS_SILENT = "no recent metrics from the gateways"
"""Message where the cause is not in the pods of a service."""
READ_GATEWAYS = (
    "check that the gateways run and that the operator reaches their port 8081: "
    "kubectl get pods --all-namespaces --selector app.kubernetes.io/name=headroom-gateway"
)
_NODES = "uncordon the nodes (kubectl uncordon), or add some"
_TAINT = "tolerate the taint in the pod template, or add nodes without it"
_PRIORITY = (
    "set spec.priorityClassName in runtime.podTemplate (with targetRef: there), or add nodes"
)
_SCHEDULER = (
    (r"was preempted by a pod of higher priority", _PRIORITY),
    (r"persistentvolumeclaim|PersistentVolumeClaim", "create or repair the PersistentVolumeClaim"),
    (r"node\.kubernetes\.io/(?:not-ready|unreachable)", "repair the nodes that are not ready"),
    (r"node\(s\) were unschedulable|node\.kubernetes\.io/unschedulable", _NODES),
    (r"Insufficient ", ""),
    (
        r"untolerated taint\(s\)(?! \{)",
        f"repair the nodes that are not ready (kubectl get nodes), {_TAINT}",
    ),
    (r"untolerated taint", _TAINT),
    (r"node affinity/selector", "correct the node selector or affinity of the pod template"),
)
"""A drained node is named before a lack of accelerators: it is what changed.
Kubernetes 1.36 names no taint, so a lost node, which has one, looks like a node for others."""
_NO_IMAGE = r"ImagePull|ErrImage|InvalidImageName|RegistryUnavailable"
_REGISTRY = r"failed to do request|429 Too Many Requests|toomanyrequests"
"""Words of containerd where a registry did not answer, or not yet."""
_KUBELET = (
    (
        rf"(?:{_NO_IMAGE}).*(?:{_REGISTRY})",
        "check the registry that it names; the pull is repeated",
    ),
    (_NO_IMAGE, "correct the image (name, tag, digest) or its imagePullSecrets"),
    (r"OOMKilled", "raise the memory limit, or lower what the server holds"),
    (r"its volumes or its network", "create what the events in kubectl describe pod POD name"),
    (r"CreateContainerConfigError", "create the Secret or ConfigMap that it names"),
    (r"probe.* s after its start", "wait while kubectl logs POD --container NAME shows progress"),
    (
        r"has not passed its \w+ probe",
        "see kubectl logs POD --container NAME, and kubectl describe pod POD",
    ),
    (
        r"CrashLoopBackOff|restarted \d+ times",
        "see kubectl logs POD --container NAME --previous",
    ),
    (r"NodeLost|NodeStatusUnknown", "repair its node: kubectl describe pod names it"),
)
_POD = re.compile(r"([a-z0-9][-a-z0-9.]*): (?:(?:init )?container|its volumes) ")
"""The pod that a message names first."""
_CONTAINER = re.compile(r"container ([a-z0-9][-a-z0-9]*)(?=: | has not passed )")
"""The container that a message names first; without it, kubectl may show the log of a sidecar."""
_DOWNLOADER = "push the downloader's image, and name it in downloader.image of the chart"
_ADMISSION = (
    (r"must specify ", "set what it names in the resources of the pods"),
    (r"exceeded quota", "raise the quota that it names"),
    (
        r"(?:maximum|minimum) \S+ usage per|max limit to request ratio",
        "fit the resources of the pods to the namespace's LimitRange",
    ),
    (r"violates PodSecurity", "correct what it names in the pod template"),
)


def step_to_schedule(message: str) -> str:
    """Return what lets the pods of a message be scheduled; empty where only more nodes do."""
    return _first(_SCHEDULER, message)


def step_to_start(message: str) -> str:
    """Return what lets the containers of a message start; empty if that is not known."""
    step = _first(_KUBELET, message)
    for word, named in (("POD", _POD.search(message)), ("NAME", _CONTAINER.search(message))):
        step = step.replace(word, named[1]) if named else step
    return step


def step_to_fetch(message: str) -> str:
    """Return what lets a model be downloaded, where the downloader's image is what is missing."""
    return _DOWNLOADER if re.search(f"container model: (?:{_NO_IMAGE})", message) else ""


def step_to_admit(message: str) -> str:
    """Return what lets the pods of a message be created; empty if that is not known."""
    return _first(_ADMISSION, message)


def step_to_read(message: str) -> str:
    """Return what makes metrics readable; empty if it is not said whose are missing."""
    return READ_GATEWAYS if GATEWAYS_SILENT in message else ""


def without_doctor(message: str) -> str:
    """Return a condition's message without the step to run the doctor, for the doctor itself."""
    return re.split(f"; (?:if this persists, )?{DIAGNOSE}", message, maxsplit=1)[0]


def _first(steps: tuple[tuple[str, str], ...], message: str) -> str:
    return next((step for pattern, step in steps if re.search(pattern, message)), "")
