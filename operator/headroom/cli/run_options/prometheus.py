"""The Prometheus servers that `headroom run` may query, by name."""

# ruff: noqa: PLC0415  (help is shown without the libraries that the operator needs)

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import typer

from headroom.adapters.redaction import redacted


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """Prometheus as the source of metrics."""

    prometheus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=URL",
            envvar="HEADROOM_PROMETHEUS",
            help="A Prometheus that services may name in spec.telemetry. Repeat it for several, "
            "with the same name for replicas that scrape the same pods. Services that name none "
            "use `default`.",
        ),
    ] = None
    prometheus_replica_label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            envvar="HEADROOM_PROMETHEUS_REPLICA_LABEL",
            help="External label that distinguishes the replicas of a Prometheus where one URL "
            "answers for several, in addition to prometheus_replica. Repeat it for several.",
        ),
    ] = None

    def urls(self) -> Mapping[str, tuple[str, ...]]:
        """Return the URLs by name; raise BadParameter for a text that is not NAME=URL."""
        try:
            return prometheus_sources(self.prometheus or ())
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--prometheus") from None


def prometheus_sources(given: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the URLs of NAME=URL pairs by name; raise ValueError with the rule and the value."""
    from headroom.api.service_spec.telemetry_source import SOURCE_NAME

    urls: dict[str, tuple[str, ...]] = {}
    for one in given:
        name, separator, url = one.partition("=")
        if not separator or re.fullmatch(SOURCE_NAME, name) is None:
            rule = "must be NAME=URL, with a name of lower-case letters, digits and -"
            raise ValueError(f"a Prometheus {rule}; got {redacted(one)!r}")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "the URL of a Prometheus must begin with http:// or https://; "
                f"got {redacted(url)!r}"
            )
        if parts.query or parts.fragment or parts.username is not None:
            rule = "must have only scheme, host, port and path: no credentials, query or fragment"
            raise ValueError(f"the URL of a Prometheus {rule}; got one of them for {name!r}")
        urls[name] = (*urls.get(name, ()), url)
    return urls
