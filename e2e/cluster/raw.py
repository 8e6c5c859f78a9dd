"""Requests to the API server as `kubectl --raw` sends them, without a process for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client import ApiClient, ApiException
from kubernetes.config import ConfigException, new_client_from_config

from cluster.errors import ClusterError

PATIENCE_S = 30.0
JSON = "application/json"


class Raw:
    """One administrator's connections; for any kubeconfig that kubectl takes."""

    def __init__(self, kubeconfig: Path) -> None:
        try:
            self._api: ApiClient = new_client_from_config(  # type: ignore[no-untyped-call]
                str(kubeconfig), persist_config=False
            )
        except ConfigException as error:
            raise ClusterError(f"the kubeconfig {kubeconfig} is not usable: {error}") from error

    def ask(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send one request and return the object that is answered.

        Raises:
            ClusterError: the API server refused, with its message, or did not answer.
        """
        headers = {"Accept": JSON, "Content-Type": JSON}
        self._api.update_params_for_auth(headers, [], ["BearerToken"], path, verb, body)
        url = f"{self._api.configuration.host}{path}"
        try:
            answer = self._api.call_api(verb, url, headers, body=body, _request_timeout=PATIENCE_S)
            said = json.loads(answer.read())  # type: ignore[no-untyped-call]
        except (ApiException, urllib3.exceptions.HTTPError, ValueError) as error:
            raise ClusterError(f"{verb} {path}: {error}") from error
        if answer.status >= 400:
            raise ClusterError(f"{verb} {path}: {said.get('message', said)} ({answer.status})")
        return said
