"""Reads the facts from the cluster."""

from __future__ import annotations

import asyncio
import time
from email.utils import parsedate_to_datetime

import orjson

from headroom.api.kind import API_VERSION, KIND
from headroom.api.schema.crd import NAME as CRD_NAME
from headroom.cli.commands.doctor.cluster_reading import ClusterReading
from headroom.cli.commands.doctor.facts import Facts, Manifest, is_formed, uid
from headroom.cli.commands.doctor.operator_deployment import runs_the_operator
from headroom.cli.commands.doctor.pod_probe import Reader

PART_OF = "app.kubernetes.io/part-of=headroom"


async def gathered(api: Reader, namespace: str | None) -> Facts:
    """Read the facts of one namespace, or of all.

    Raises ClusterError where the API server does not answer at all.
    """
    version, now_s = await _server(api)
    reading = ClusterReading(api)
    crd = await reading.of(
        "CustomResourceDefinition", lambda: _found(api, CRD_NAME), None, missing=None
    )
    stored, operators, autoscalers, policies, budgets, nodes = await asyncio.gather(
        reading.listed(API_VERSION, KIND, namespace),
        reading.listed("apps/v1", "Deployment", None, PART_OF),
        reading.listed("autoscaling/v2", "HorizontalPodAutoscaler", namespace),
        reading.listed("networking.k8s.io/v1", "NetworkPolicy", namespace),
        reading.listed("policy/v1", "PodDisruptionBudget", namespace),
        reading.listed("v1", "Node", None),
    )
    services = [one for one in stored if is_formed(one)]
    operators = [one for one in operators if runs_the_operator(one)]
    leases = await reading.listed("coordination.k8s.io/v1", "Lease", "kube-node-lease")
    for space in sorted({one["metadata"]["namespace"] for one in operators}):
        leases += await reading.listed("coordination.k8s.io/v1", "Lease", space)
    certificates = await reading.certificates(operators)
    targets = await asyncio.gather(*(reading.target(one) for one in services))
    pods = await asyncio.gather(*(reading.pods(one) for one in services))
    answers = await asyncio.gather(*map(reading.answer, services, pods))
    return Facts(
        version=version,
        now_s=now_s,
        crd=crd,
        operators=tuple(operators),
        denied=tuple(await reading.denied(operators, namespace)),
        services=tuple(services),
        malformed=tuple(one for one in stored if not is_formed(one)),
        targets={uid(one): found for one, found in zip(services, targets, strict=True)},
        autoscalers=tuple(autoscalers),
        policies=tuple(policies),
        budgets=tuple(budgets),
        nodes=tuple(nodes),
        pods={uid(one): tuple(found) for one, found in zip(services, pods, strict=True)},
        answers={
            uid(one): answer
            for one, answer in zip(services, answers, strict=True)
            if answer is not None
        },
        leases=tuple(leases),
        certificates=certificates,
        unread=tuple(reading.unread.values()),
    )


async def _server(api: Reader) -> tuple[tuple[int, int] | None, float | None]:
    found = await api.fetch("/version")
    now_s = parsedate_to_datetime(found.date).timestamp() if found.date else time.time()
    if found.status != 200:
        return None, now_s
    version = orjson.loads(found.body)
    # Some providers write the minor version as "31+".
    return (int(version["major"]), int(version["minor"].rstrip("+"))), now_s


async def _found(api: Reader, name: str) -> Manifest | None:
    return await api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name)
