"""Runs Helm as a user does, with a cluster or without."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cluster.commands import run

PATIENCE_S = 120.0


class Helm:
    """The Helm program with its own folders, so that it ignores the user's configuration."""

    def __init__(self, program: Path, home: Path, kubeconfig: Path | None = None) -> None:
        self._program = program
        self._environment = {
            "HELM_CACHE_HOME": str(home / "cache"),
            "HELM_CONFIG_HOME": str(home / "config"),
            "HELM_DATA_HOME": str(home / "data"),
            "KUBECONFIG": str(kubeconfig) if kubeconfig else str(home / "no-cluster"),
        }

    def __call__(
        self,
        *words: str | Path,
        values: Mapping[str, Any] | None = None,
        timeout_s: float = PATIENCE_S,
    ) -> str:
        """Run Helm and return its output.

        Raises:
            ClusterError: Helm failed; the message holds what it said.
        """
        given = [] if values is None else ["--values", "-"]
        return run(
            [self._program, *words, *given],
            what=f"helm {' '.join(str(word) for word in words[:3])}",
            env=self._environment,
            stdin=None if values is None else json.dumps(values),
            timeout_s=timeout_s,
        )

    def template(
        self,
        chart: Path,
        values: Mapping[str, Any] | None = None,
        *words: str,
        release: str = "headroom",
        namespace: str = "headroom-system",
    ) -> list[dict[str, Any]]:
        """Return the chart's objects, including those of `helm test`.

        Raises:
            ClusterError: the chart does not take these values.
        """
        place = ("--namespace", namespace)
        return objects(self("template", release, chart, *place, *words, values=values or {}))


def objects(text: str) -> list[dict[str, Any]]:
    """Return the manifests in a YAML stream."""
    return [each for each in yaml.safe_load_all(text) if each]
