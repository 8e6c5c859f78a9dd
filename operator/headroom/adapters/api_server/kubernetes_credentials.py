"""Credentials of a cluster: from a kubeconfig, or from the pod's service account."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_kube_config
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from yaml import YAMLError

from headroom.errors import Forbidden

_DEFAULT_KUBECONFIG = "~/.kube/config"
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_UNREADABLE = (OSError, UnicodeDecodeError, YAMLError)
_OTHER_SHAPE = (AttributeError, TypeError)
"""Exceptions of the client for YAML of another shape than it assumes."""


async def load_credentials(
    configuration: Configuration,
    environment: Mapping[str, str],
    kubeconfig: str | None,
    context: str | None,
) -> str:
    """Configure the client; return the namespace of its context.

    The first that exists is used: the file `kubeconfig`, KUBECONFIG, the pod's account (not with a
    `context`), ~/.kube/config. Raises Forbidden without usable credentials.
    """
    named = kubeconfig or environment.get("KUBECONFIG")
    in_a_pod = environment.get("KUBERNETES_SERVICE_HOST")
    try:
        if not named and not context and in_a_pod:
            of_pod(_ACCOUNT, environment).load_and_set(configuration)
            return "default"
        return await _from_file(configuration, named or _DEFAULT_KUBECONFIG, context)
    except ConfigException as error:
        raise Forbidden(f"no credentials for a cluster: {error}") from error


def of_pod(account: Path, environment: Mapping[str, str]) -> Any:
    """Return the loader of a pod's credentials, which rereads the token every minute.

    The kubelet renews the token long before it expires. A new CA needs a new process.
    """
    return InClusterConfigLoader(  # type: ignore[no-untyped-call]
        token_filename=str(account / "token"),
        cert_filename=str(account / "ca.crt"),
        environ=environment,
    )


async def _from_file(configuration: Configuration, paths: str, context: str | None) -> str:
    _require_a_file(paths)
    try:
        loader = await load_kube_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration,
            config_file=paths,
            context=context,
            persist_config=False,
        )
    except _UNREADABLE as error:
        raise ConfigException(
            f"{paths} must be a readable kubeconfig file; got {type(error).__name__}: {error}"
        ) from error
    except _OTHER_SHAPE as error:
        raise ConfigException(
            f"{paths} must be a readable kubeconfig file; got YAML without clusters, users and "
            "contexts. `kubectl config view --raw` prints a kubeconfig"
        ) from error
    except ConfigException as error:
        if not context or "/contexts list" not in str(error):
            raise
        raise ConfigException(
            f"--context must be a context of {paths}; got {context!r:.60}. "
            "`kubectl config get-contexts` lists them"
        ) from error
    chosen = loader.current_context.get("context") or {}
    return chosen.get("namespace") or "default"


def _require_a_file(paths: str) -> None:
    if not any(Path(path).expanduser().exists() for path in paths.split(os.pathsep)):
        raise ConfigException(f"{paths} does not exist; set KUBECONFIG to a kubeconfig file")
