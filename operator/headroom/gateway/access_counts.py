"""What a gateway counts of each service as its clients see it, and how that is read. Pure.

Envoy's access log goes into counters, not into lines: one for each way in which a request may end,
and the time from the end of a request to the end of its answer, in Envoy's own buckets, a tenth of
their value wide at most. Both sides of the wire stand here.
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
"""On the gateway's own port, beside what Prometheus scrapes."""
MERGED_EVERY = "1s"
"""So often Envoy adds up what its threads have timed."""
MAX_ENDS, MAX_TIMED = 256, 64
"""Counters of one service: whatever replicas answer, a gateway's memory is bounded."""

_KEPT = rf"^({PREFIX}\.|cluster\..*\.upstream_rq_active$)"
ADMIN_PATH = f"/stats?usedonly&format=json&histogram_buckets=detailed&filter={quote(_KEPT)}"
"""What the page is, of Envoy's admin interface."""


def access_log(service: str) -> list[Json]:
    """Build what counts the requests that come in for a service, by its key.

    They count for the service whose replicas they went to, which with shares and models may be
    another; those that went to none, for this one.
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
    """Answers that took from `lower_us` to less than `upper_us`. Plain, for there are many."""

    lower_us: float
    upper_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What one gateway has counted of a service since it began to."""

    arrived: int = 0
    """Counted when they end, however they do; those beyond their tenant's limits are left out."""
    active: int = 0
    """In flight now: the only number here that may fall."""
    missed: int = 0
    """Refused, failed, expired or abandoned, whoever it was that refused."""
    turned_away: int = 0
    """Of the missed those that no replica can have seen."""
    answered: Mapping[Bin, int] = field(default_factory=dict)


def read(page: str | bytes) -> dict[str, Counted]:
    """Read a gateway's page, by the services' keys; raise ValueError naming what it breaks."""
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
        raise ValueError(f"no page of a gateway's counts: {error!r:.200}") from error
    return {key: sums.counted() for key, sums in services.items()}


@dataclass(slots=True)
class _Sums:
    numbers: dict[str, int] = field(default_factory=dict)
    answered: dict[Bin, int] = field(default_factory=dict)

    def add(self, name: str, value: int) -> None:
        self.numbers[name] = self.numbers.get(name, 0) + value

    def counted(self) -> Counted:
        return Counted(answered=self.answered, **self.numbers)


_ENDED = re.compile(
    rf"{PREFIX}\.{REQUESTS}\.service\.(?P<service>[^.]+)\.to\.(?P<to>[^.]+)"
    r"\.code\.(?P<code>[0-9]+)\.flags\.(?P<flags>[^.]*)\.grpc\.(?P<grpc>[0-9-]*)"
)
_TIMED = re.compile(
    rf"{PREFIX}\.{ANSWERED}\.service\.(?P<service>[^.]+)\.to\.(?P<to>[^.]+)"
    r"\.grpc\.(?P<grpc>[0-9-]*)"
)
_INSIDE = re.compile(r"cluster\.(?P<to>[^./]+/[^./]+(?:/grpc)?)\.upstream_rq_active")
_GRPC_ANSWERED = ("", "-", "0")
_GRPC_MISSED = ("1", "2", "4", "8", "13", "14", "15")
"""Cancelled, Unknown, DeadlineExceeded, ResourceExhausted, Internal, Unavailable, DataLoss; the
other ones are the caller's fault."""
_LIMITED = "RL"
_NEVER_SEEN = frozenset({"UO", "UH", "UF", "LH", "NC", "NR"})
"""Of Envoy's flags those that say that no replica was found, reached, or to be asked."""


def _take(services: dict[str, _Sums], name: str, value: int) -> None:
    """Enter one counter, where it is one of a service."""
    if inside := _INSIDE.fullmatch(name):
        services.setdefault(inside["to"].removesuffix("/grpc"), _Sums()).add("active", value)
    elif ended := _ENDED.fullmatch(name):
        flags = set(ended["flags"].split(","))
        if _LIMITED in flags:
            return
        sums = services.setdefault(_owner(ended), _Sums())
        sums.add("arrived", value)
        if _is_missed(int(ended["code"]), ended["grpc"]):
            sums.add("missed", value)
            if flags & _NEVER_SEEN:
                sums.add("turned_away", value)


def _owner(counted: re.Match[str]) -> str:
    """Name the service whose replicas had the request, or were to have it."""
    to = counted["to"].removesuffix("/grpc")
    return counted["service"] if to == "-" else to


def _is_missed(code: int, grpc: str) -> bool:
    """Whether a request that ended so counts against the promise; 0 stands for a client that left.

    What is the client's own fault (400, 404, 408, 413 and so on) does not.
    """
    if grpc in _GRPC_MISSED:
        return True
    return code in (0, 429) or code >= 500


def _add(answered: dict[Bin, int], totals: list[dict[str, float]]) -> None:
    for one in totals:
        lower = one["lower_bound"]
        each = Bin(round(lower, 3), round(lower + one["width"], 3))
        answered[each] = answered.get(each, 0) + int(one["count"])
