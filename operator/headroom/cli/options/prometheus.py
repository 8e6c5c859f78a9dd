"""Which Prometheus the operator may ask, by the names that resources use for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated
from urllib.parse import urlsplit

import typer

from headroom.adapters.redaction import redacted

PrometheusUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--prometheus",
        metavar="NAME=URL",
        envvar="HEADROOM_PROMETHEUS",
        help="A Prometheus that services may name in spec.telemetry; repeat for several, with the "
        "same name for replicas that scrape the same pods. Services that name none ask `default`.",
    ),
]
ReplicaLabels = Annotated[
    list[str] | None,
    typer.Option(
        "--prometheus-replica-label",
        metavar="LABEL",
        envvar="HEADROOM_PROMETHEUS_REPLICA_LABEL",
        help="External label that tells replicas of a Prometheus apart where one URL answers for "
        "several, beside prometheus_replica; repeat for several.",
    ),
]


def sources(given: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Read NAME=URL pairs; raise ValueError with the rule and what was received."""
    from headroom.api.telemetry_source import SOURCE_NAME  # noqa: PLC0415  (help needs no schema)

    urls: dict[str, tuple[str, ...]] = {}
    for one in given:
        name, separator, url = one.partition("=")
        if not separator or re.fullmatch(SOURCE_NAME, name) is None:
            rule = "a Prometheus is given as NAME=URL, the name of lower case, digits and -"
            raise ValueError(f"{rule}, received {redacted(one)!r}")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"the URL of a Prometheus begins with http(s)://, received {redacted(url)!r}"
            )
        if parts.query or parts.fragment or parts.username is not None:
            rule = "the URL of a Prometheus is scheme, host, port and path, without credentials"
            raise ValueError(f"{rule}, query or fragment, received one for {name!r}")
        urls[name] = (*urls.get(name, ()), url)
    return urls
