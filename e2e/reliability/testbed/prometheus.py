"""Pods' pages as a Prometheus returns them: text to the answer of a range selector."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_NAMESPACE = re.compile(r'namespace="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Scraped:
    """One pod's page."""

    namespace: str
    pod: str
    text: str


def namespace_asked(query: str) -> str:
    """Read the namespace that the operator's selector names; empty where it names none."""
    found = _NAMESPACE.search(query)
    return found.group(1) if found else ""


def answer(pages: Iterable[Scraped], now_s: float, *, partial: bool = False) -> str:
    """Write what the API answers: every series with one sample, all of the same time."""
    series = [
        {
            "metric": {
                "__name__": line["name"],
                **dict(_LABEL.findall(line["labels"])),
                "namespace": page.namespace,
                "pod": page.pod,
                "job": "pods",
                "instance": page.pod,
            },
            "values": [[now_s, line["value"]]],
        }
        for page in pages
        for line in _LINE.finditer(page.text)
    ]
    body: dict[str, object] = {
        "status": "success",
        "data": {"resultType": "matrix", "result": series},
    }
    if partial:
        body["warnings"] = ["a store did not answer"]
    return json.dumps(body)
