"""The commands and manifests in the documentation, and how each of them is tested.

A command is in a block of `sh`, or indented by four spaces behind a program's name. What is not
run says why, in `NOT_RUN`; a program that is in neither table fails the test that reads it.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
STATIC = ("headroom", "make", "docker build", "kubectl headroom")
"""Parsed by the unit tests: options, targets and files exist."""
ON_A_SERVER = ("kubectl", "helm install")
"""Sent to a real API server, as a dry run where it would write."""
NOT_RUN = {
    "helm test": "needs a node; e2e/scenarios/installation/test_chart.py runs it",
    "helm upgrade": "needs a node; e2e/scenarios/installation/test_chart.py runs it",
    "helm uninstall": "needs a node; e2e/scenarios/installation/test_chart.py runs it",
    "kubectl -n headroom-system port-forward": "needs a node; the console's scenarios forward",
    "kubectl patch secret headroom-ca": "needs issued certificates; tests/gateway rotate them",
    "helm verify": "needs a signed release; e2e/scenarios/installation/test_release.py runs it",
    "gpg": "needs a signed release and a key; e2e/scenarios/installation/test_release.py runs it",
    "sha256sum": "needs a release; e2e/scenarios/installation/test_release.py runs it",
    "cosign": "signs in a registry of yours",
    "docker push": "writes to a registry of yours",
    "docker run": "needs Docker; the image's entry point is that of the operator",
    "kubectl krew": "needs a release; tests/release/test_plugin.py runs its launcher",
    "kind": "needs Docker; the scenarios run on a real node without it",
    "pip install": "needs a package index",
    ".venv/bin/python": "a tool of the tests, which run it",
    "curl": "needs a server; the tests of the model server send it",
    "headroom-server": "tests/server run it",
    "PYTHONPATH=. headroom-server": "tests/server/device/test_documented_model.py runs it",
    "cd chat-8b": "tests/resources/test_downloader.py runs it",
}
"""The beginning of a command, and why nothing runs it here."""
FOREIGN = {
    "Certificate": "cert-manager",
    "ScaledObject": "KEDA",
    "Kustomization": "kustomize, which reads it from a folder",
    "ServingRuntime": "KServe",
    "Application": "Argo CD",
    "HelmRelease": "Flux",
}
"""Kinds of other projects, which a plain API server does not know."""
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(
    r"^    (?:\.venv/bin/(?=headroom ))?"
    r"(?=(?:kubectl|helm|headroom|headroom-server|make|docker|pip|curl) )((?:.*\\\n)*.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Command:
    """One command of a page."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        """Return the words as a shell splits them."""
        return shlex.split(self.text, comments=True)

    def begins_with(self, beginnings: tuple[str, ...]) -> str:
        """Return the longest of these prefixes; empty if none fits."""
        fitting = [one for one in beginnings if f"{self.text} ".startswith(f"{one} ")]
        return max(fitting, key=len, default="")


def commands() -> Iterator[Command]:
    """Return every command of every page."""
    for page, text in _pages():
        blocks = [body for kind, body in _BLOCK.findall(text) if kind == "sh"]
        bare = _BLOCK.sub("", text)
        for body in [*blocks, *_INDENTED.findall(bare)]:
            for line in re.sub(r"\s*\\\n\s*", " ", body).splitlines():
                if line.strip() and not line.startswith("#"):
                    yield Command(page, line.strip())


def manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every whole manifest of every page."""
    for page, text in _pages():
        for kind, body in _BLOCK.findall(text):
            for document in yaml.safe_load_all(body) if kind == "yaml" else ():
                if isinstance(document, dict) and {"apiVersion", "kind"} <= document.keys():
                    yield page, document


def _pages() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.split():
        yield name, (ROOT / name).read_text(encoding="utf-8")
