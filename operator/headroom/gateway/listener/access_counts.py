"""The gateways' counts per service, from the clients' view: configuration and parser. Pure.

Envoy's access log feeds counters instead of lines: one per outcome of a request, and a histogram of
the time from the end of a request to the end of its answer, in Envoy's buckets, which are at most a
tenth of their value wide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from headroom.gateway.type_urls import Json, typed

PREFIX = "headroom"
REQUESTS = "requests"
ANSWERED = "answered_microseconds"
PAGE = "/stats/services"
"""Path on the gateway's ops port."""
MERGED_EVERY = "1s"
"""Interval at which Envoy merges the histograms of its threads."""
MAX_ENDS, MAX_TIMED = 256, 64
"""Maximum counters per service, so that a gateway's memory is bounded whatever replicas answer."""

_KEPT = rf"^({PREFIX}\.|cluster\..*\.upstream_rq_active$)"
ADMIN_PATH = f"/stats?usedonly&format=json&histogram_buckets=detailed&filter={quote(_KEPT)}"
"""The page's query of Envoy's admin interface."""


def access_log(service: str) -> list[Json]:
    """Build the access loggers of a service, by its key.

    Requests count for the service whose replicas received them, which may be another one with
    traffic shares and models; requests that no replica received count for this one.
    """
    ends = _stat(REQUESTS, service, code="%RESPONSE_CODE%", flags="%RESPONSE_FLAGS%")
    timed = {
        "stat": _stat(ANSWERED, service),
        "unit": "Microseconds",
        "value_format": "%COMMON_DURATION(DS_RX_END:DS_TX_END:us)%",
    }
    answered = {"and_filter": {"filters": [_status("GE", 200), _status("LE", 399)]}}
    return [
        _log(counters=[{"stat": ends, "value_fixed": 1}]),
        _log(histograms=[timed]) | {"filter": answered},
    ]


def _log(**stats: Any) -> Json:
    scope = {"prefix": PREFIX, "max_counters": MAX_ENDS, "max_histograms": MAX_TIMED}
    config = "envoy.extensions.access_loggers.stats.v3.Config"
    return typed("envoy.access_loggers.stats", config, stats_scope=scope, **stats)


def _stat(name: str, service: str, **tags: str) -> Json:
    tags = {"service": service, "to": "%UPSTREAM_CLUSTER%", **tags, "grpc": "%GRPC_STATUS_NUMBER%"}
    written = [{"name": key, "value_format": value} for key, value in tags.items()]
    return {"name": name, "tags": written}


def _status(comparison: str, status: int) -> Json:
    value = {"default_value": status, "runtime_key": "headroom.none"}
    return {"status_code_filter": {"comparison": {"op": comparison, "value": value}}}


class Bin(NamedTuple):
    """A histogram bin: answers that took from `lower_us` to less than `upper_us`."""

    lower_us: float
    upper_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCounters:
    """One gateway's counts of a service since the gateway started."""

    arrived: int = 0
    """Requests that ended or are in flight. For a moment it may decrease, because a request is no
    longer in flight before its end is counted."""
    ended: int = 0
    """Whatever the outcome, without those above their tenant's limits."""
    active: int = 0
    """Requests in flight now, which may decrease."""
    missed: int = 0
    """Rejected, failed, expired or abandoned requests."""
    rejected: int = 0
    """Missed requests that reached no replica."""
    answered: Mapping[Bin, int] = field(default_factory=dict)


def read(page: str | bytes) -> dict[str, ServiceCounters]:
    """Parse a gateway's page into counts by service key; raise ValueError."""
    services: dict[str, _Sums] = {}
    try:
        for one in orjson.loads(page)["stats"]:
            if "name" in one:
                _take(services, one["name"], int(one["value"]))
            for row in one.get("histograms", {}).get("details", ()):
                found = _TIMED.fullmatch(row["name"])
                if found and found["grpc"] in _GRPC_ANSWERED:
                    _add(services.setdefault(_owner(found), _Sums()).answered, row["totals"])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a page of gateway counts: {error!r:.200}") from error
    return {key: sums.counted() for key, sums in services.items()}


@dataclass(slots=True)
class _Sums:
    numbers: dict[str, int] = field(default_factory=dict)
    answered: dict[Bin, int] = field(default_factory=dict)

    def add(self, name: str, value: int) -> None:
        self.numbers[name] = self.numbers.get(name, 0) + value

    def counted(self) -> ServiceCounters:
        arrived = self.numbers.get("ended", 0) + self.numbers.get("active", 0)
        return ServiceCounters(arrived=arrived, answered=self.answered, **self.numbers)


_ENDED = re.compile(
    rf"{PREFIX}\.{REQUESTS}\.service\.(?P<service>[^.]+)\.to\.(?P<to>[^.]+)"
    r"\.code\.(?P<code>[0-9]+)\.flags\.(?P<flags>[^.]*)\.grpc\.(?P<grpc>[0-9-]*)"
)
_TIMED = re.compile(
    rf"{PREFIX}\.{ANSWERED}\.service\.(?P<service>[^.]+)\.to\.(?P<to>[^.]+)"
    r"\.grpc\.(?P<grpc>[0-9-]*)"
)
_INSIDE = re.compile(r"cluster\.(?P<to>[^./]+/[^./]+(?:/grpc|/upgrades)?)\.upstream_rq_active")
_GRPC_ANSWERED = ("", "-", "0")
_GRPC_MISSED = ("1", "2", "4", "8", "13", "14", "15")
"""Cancelled, Unknown, DeadlineExceeded, ResourceExhausted, Internal, Unavailable, DataLoss; other
codes are errors of the client."""
_LIMITED = "RL"
_NEVER_SEEN = frozenset({"UO", "UH", "UF", "LH", "NC", "NR"})
"""Envoy's response flags of requests that reached no replica."""


def _take(services: dict[str, _Sums], name: str, value: int) -> None:
    """Add one counter, if it belongs to a service."""
    if inside := _INSIDE.fullmatch(name):
        services.setdefault(_served(inside["to"]), _Sums()).add("active", value)
    elif ended := _ENDED.fullmatch(name):
        flags = set(ended["flags"].split(","))
        if _LIMITED in flags:
            return
        sums = services.setdefault(_owner(ended), _Sums())
        sums.add("ended", value)
        if _is_missed(int(ended["code"]), ended["grpc"]):
            sums.add("missed", value)
            if flags & _NEVER_SEEN:
                sums.add("rejected", value)


def _owner(counted: re.Match[str]) -> str:
    """Return the service whose replicas received the request, or the one that it was sent to."""
    to = _served(counted["to"])
    return counted["service"] if to == "-" else to


def _served(cluster: str) -> str:
    """Return the service of a cluster; each of its kinds of requests has one."""
    return cluster.removesuffix("/grpc").removesuffix("/upgrades")


def _is_missed(code: int, grpc: str) -> bool:
    """Return whether an outcome counts against the SLO; code 0 is a client that disconnected.

    Client errors (400, 404, 408, 413 and so on) do not count.
    """
    if grpc in _GRPC_MISSED:
        return True
    return code in (0, 429) or code >= 500


def _add(answered: dict[Bin, int], totals: list[dict[str, float]]) -> None:
    for one in totals:
        lower = one["lower_bound"]
        each = Bin(round(lower, 3), round(lower + one["width"], 3))
        answered[each] = answered.get(each, 0) + int(one["count"])
