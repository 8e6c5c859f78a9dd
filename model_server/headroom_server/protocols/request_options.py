"""A request's options: deadline, priority, tenant, and whether it is a retry. Pure.

HTTP headers and gRPC metadata have the same names. An SLO class supplies the values that a request
does not set itself; the class `default` applies to requests that name no class.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from headroom_server.errors import ImpossibleDeadlineError, InvalidRequestError
from headroom_server.protocols.retry_headers import RETRY_HEADERS, is_retry

TIMEOUT = b"x-request-timeout"
"""Seconds from arrival after which the client no longer needs the response."""
FIRST_TOKEN_TIMEOUT = b"x-first-token-timeout"
"""Seconds from arrival after which the first token of generated text is of no use."""
PRIORITY = b"x-request-priority"
"""0 (most urgent) to 9."""
TENANT = b"x-tenant"
"""The tenant; waiting tenants get equal shares of the device."""
SLO_CLASS = b"x-slo-class"
"""The name of one of the model's classes."""

LONGEST_S = 86_400.0
LAST_PRIORITY = 9
USUAL_PRIORITY = 5
MAX_TENANT_BYTES = 128
DEFAULT_CLASS = "default"
BATCH_CLASS = "batch"
"""Class of models that generate: fills what other requests leave."""

_NAMES = frozenset({TIMEOUT, FIRST_TOKEN_TIMEOUT, PRIORITY, TENANT, SLO_CLASS, *RETRY_HEADERS})


class RequestOptions(NamedTuple):
    """One request's options. `deadline_s` counts from its arrival; None: no deadline."""

    deadline_s: float | None = None
    priority: int = USUAL_PRIORITY
    tenant: str = ""
    retried: bool = False
    """Whether a client or proxy says that it was sent before."""
    first_token_deadline_s: float | None = None
    """For generated text; from its arrival."""
    batch: bool = False
    """For generated text: whether it takes only what other requests leave."""
    slo_class: str = ""
    """The class that it names; empty: none."""


class SloClass(NamedTuple):
    """Values for the requests of a class that do not set their own."""

    priority: int = USUAL_PRIORITY
    deadline_s: float | None = None
    first_token_deadline_s: float | None = None
    batch: bool = False


def check_deadline(deadline_s: float | None, fastest_s: float, name: bytes) -> None:
    """Check a request's time against the shortest that anything took here; 0: unknown.

    Raises:
        ImpossibleDeadlineError: no load and no number of replicas would allow it.
    """
    if deadline_s is not None and deadline_s < fastest_s:
        raise ImpossibleDeadlineError(
            f"{name.decode()}, or a deadline of the protocol or the SLO class, must be at least "
            f"{fastest_s:.3g} s, the shortest time that anything took here; got {deadline_s:g} s"
        )


SloClasses = Mapping[str, SloClass]

USUAL = RequestOptions()


def parse_request_options(
    headers: Mapping[bytes, bytes],
    classes: SloClasses = {},  # noqa: B006 - never written
    *,
    deadline_s: float | None = None,
) -> RequestOptions:
    """Parse the options from lower-case headers and the model's classes.

    `deadline_s` is that of the protocol itself (grpc-timeout); the earlier one counts.

    Raises:
        InvalidRequestError: with header, rule and value.
    """
    if deadline_s is None and DEFAULT_CLASS not in classes and _NAMES.isdisjoint(headers):
        return USUAL
    slo = _slo_class(headers.get(SLO_CLASS), classes)
    timeout_s = _seconds(headers, TIMEOUT)
    if deadline_s is not None:
        timeout_s = deadline_s if timeout_s is None else min(deadline_s, timeout_s)
    first_token_s = _seconds(headers, FIRST_TOKEN_TIMEOUT)
    return RequestOptions(
        slo.deadline_s if timeout_s is None else timeout_s,
        _priority(headers[PRIORITY]) if PRIORITY in headers else slo.priority,
        _tenant(headers[TENANT]) if TENANT in headers else "",
        is_retry(headers),
        slo.first_token_deadline_s if first_token_s is None else first_token_s,
        slo.batch,
        headers[SLO_CLASS].decode("latin-1") if SLO_CLASS in headers else "",
    )


def _slo_class(name: bytes | None, classes: SloClasses) -> SloClass:
    if name is None:
        return classes.get(DEFAULT_CLASS, SloClass())
    found = classes.get(name.decode("latin-1"))
    if found is None:
        known = ", ".join(sorted(classes)) or "none"
        raise _invalid(SLO_CLASS, f"one of the model's SLO classes ({known})", name)
    return found


def _seconds(headers: Mapping[bytes, bytes], name: bytes) -> float | None:
    value = headers.get(name)
    if value is None:
        return None
    # the gateway's own pattern: float() alone takes 1_0 and 1e1, which it does not shorten
    seconds = float(value) if _SECONDS.fullmatch(value) else math.nan
    if not 0.0 < seconds <= LONGEST_S:
        raise _invalid(name, f"a number of seconds above 0 and at most {LONGEST_S:.0f}", value)
    return seconds


_SECONDS = re.compile(rb"[0-9]{1,18}(\.[0-9]{0,18})?")


def _priority(value: bytes) -> int:
    if len(value) != 1 or not b"0" <= value <= b"9":
        raise _invalid(PRIORITY, f"a digit from 0 (most urgent) to {LAST_PRIORITY}", value)
    return int(value)


def _tenant(value: bytes) -> str:
    if len(value) > MAX_TENANT_BYTES or not value.isascii():
        raise _invalid(TENANT, f"at most {MAX_TENANT_BYTES} ASCII characters", value)
    return value.decode("ascii")


def _invalid(header: bytes, rule: str, value: bytes) -> InvalidRequestError:
    return InvalidRequestError(
        f"{header.decode()} must be {rule}; got {value.decode('latin-1')!r:.40}"
    )
