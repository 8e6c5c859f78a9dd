"""Reads objects, pods' metrics and the generator's log during the demo."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.exceptions import ApiException
from kubernetes.config import new_client_from_config

from cluster import ClusterError
from demo import readings, views
from demo.recording import Snapshot
from headroom.api.kind import GROUP, PLURAL, VERSION
from headroom.resources.names import selector_text
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.headroom_page import METRICS_PATH, read_sample

DEADLINE_S = 10.0
LOG_OVERLAP_S = 6


class UnreadableError(ClusterError):
    """Something could not be read now; the next snapshot may succeed."""


class Reader:
    """Reads one service of one namespace, over one connection."""

    def __init__(self, kubeconfig: Path, namespace: str, service: str, gpu_resource: str) -> None:
        self._client: ApiClient = new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]
        self._namespace, self._service, self._gpu = namespace, service, gpu_resource
        self._objects = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}/{service}"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()  # type: ignore[no-untyped-call]

    def service(self) -> views.ServiceView:
        """Read the InferenceService."""
        return readings.service(self._get(self._objects))

    def address(self) -> str:
        """URL of the service inside the cluster; by address, so that no DNS is needed."""
        body = self._get(f"/api/v1/namespaces/{self._namespace}/services/{self._service}")
        return f"http://{body['spec']['clusterIP']}:{body['spec']['ports'][0]['port']}"

    def snapshot(self, model: str) -> Snapshot:
        """Read everything once."""
        deployment = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{self._service}"
        bodies = self._pods(selector_text(self._service))
        pods = tuple(readings.pod(body, self._gpu) for body in bodies)
        return Snapshot(
            time_s=time.time(),
            service=self.service(),
            workload=readings.workload(self._get(deployment)),
            pods=pods,
            waiting=self._waiting([pod.name for pod in pods if pod.ready_s is not None], model),
        )

    def operator_restarts(self, namespace: str, operator: str) -> int:
        """Restarts of the operator's containers, and pods of it beyond the first."""
        bodies = self._pods(f"app.kubernetes.io/name={operator}", namespace)
        return sum(readings.restarts(body) for body in bodies) + max(0, len(bodies) - 1)

    def log(self, job: str, *, everything: bool = False) -> str:
        """Return the recent log of the Job's pod, or all; nothing before it has started."""
        bodies = self._pods(f"batch.kubernetes.io/job-name={job}")
        if not bodies:
            return ""
        name = bodies[0]["metadata"]["name"]
        path = f"/api/v1/namespaces/{self._namespace}/pods/{name}/log"
        query = {} if everything else {"sinceSeconds": str(LOG_OVERLAP_S)}
        try:
            return self._text(path, query)
        except UnreadableError:
            return ""

    def job_ended(self, job: str) -> bool:
        """Return whether the Job is complete or has failed."""
        body = self._get(f"/apis/batch/v1/namespaces/{self._namespace}/jobs/{job}")
        conditions = body.get("status", {}).get("conditions", ())
        return any(
            each["type"] in ("Complete", "Failed") and each["status"] == "True"
            for each in conditions
        )

    def _waiting(self, pods: list[str], model: str) -> int | None:
        total = 0
        for name in pods:
            path = f"/api/v1/namespaces/{self._namespace}/pods/{name}:8000/proxy{METRICS_PATH}"
            try:
                total += read_sample(self._text(path, {}), pod=name, model=model, time_s=0).waiting
            except (UnreadableError, TelemetryError):
                return None
        return total

    def _pods(self, selector: str, namespace: str | None = None) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{namespace or self._namespace}/pods"
        found: list[dict[str, Any]] = self._get(path, {"labelSelector": selector})["items"]
        return found

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self._text(path, query or {}))
        return body

    def _text(self, path: str, query: Mapping[str, str]) -> str:
        request = self._client.param_serialize(
            "GET",
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json, */*"},
            auth_settings=["BearerToken"],
        )
        try:
            response = self._client.call_api(*request, _request_timeout=DEADLINE_S)
            text: str = response.read().decode()  # type: ignore[no-untyped-call]
        except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            raise UnreadableError(f"GET {path}: {error}") from error
        if response.status != 200:
            raise UnreadableError(f"GET {path}: status {response.status}: {text[:200]}")
        return text
