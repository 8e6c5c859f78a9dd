"""Access to the API server: tokens, and kubeconfig files that carry them."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from pathlib import Path

import yaml

USERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("admin", ("system:masters",)),
    "node": ("system:node:local", ("system:nodes",)),
    "proxy": ("system:kube-proxy", ()),
}
"""Each token's owner: user name and groups, which RBAC then judges."""


def new_tokens() -> dict[str, str]:
    """A new token for each of `USERS`."""
    return {name: secrets.token_hex(16) for name in USERS}


def token_file(tokens: Mapping[str, str]) -> str:
    """The API server's token file: token, user, uid, groups."""
    rows = []
    for number, (name, (user, groups)) in enumerate(USERS.items(), start=1):
        row = f"{tokens[name]},{user},{number}"
        rows.append(f'{row},"{",".join(groups)}"' if groups else row)
    return "\n".join(rows) + "\n"


def kubeconfig(server: str, authority_pem: bytes, token: str) -> str:
    """A kubeconfig that needs no other file; JSON, which every YAML reader takes."""
    authority = base64.b64encode(authority_pem).decode()
    context = {"cluster": "headroom", "user": "headroom", "namespace": "default"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "headroom",
                "cluster": {"server": server, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": "headroom", "user": {"token": token}}],
        "contexts": [{"name": "headroom", "context": context}],
        "current-context": "headroom",
    }
    return json.dumps(config, indent=1)


def with_token(kubeconfig_text: str, token: str, namespace: str) -> str:
    """The same cluster as in a kubeconfig, seen by the owner of another token."""
    config = yaml.safe_load(kubeconfig_text)
    current = config["current-context"]
    context = next(each for each in config["contexts"] if each["name"] == current)
    cluster_name = context["context"]["cluster"]
    cluster = next(each for each in config["clusters"] if each["name"] == cluster_name)
    narrowed = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": "service-account", "user": {"token": token}}],
        "contexts": [
            {
                "name": "service-account",
                "context": {
                    "cluster": cluster_name,
                    "user": "service-account",
                    "namespace": namespace,
                },
            }
        ],
        "current-context": "service-account",
    }
    return json.dumps(narrowed, indent=1)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(text)
