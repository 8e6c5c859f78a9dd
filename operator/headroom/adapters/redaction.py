"""Removes credentials from foreign text before it reaches a log, an event or a status. Pure.

An error page may repeat the request's headers; an admission policy may repeat the rejected object.
Secrets that the operator sent (its token, values of environment variables) are removed by value,
other ones by their form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

REDACTED = "[redacted]"
LONGEST_LOOKED_AT = 1 << 14
SHORTEST_SECRET = 6
"""A shorter value would match everywhere."""
OWN_VARIABLES = "HEADROOM_"
"""Prefix of Headroom's variables, whose values are not secret."""

_FORMS = (
    (re.compile(r"(?i)\b(bearer|basic)(\s++)[\w.~+/=-]{6,}+"), rf"\1\2{REDACTED}"),
    (re.compile(r"(?<=://)[^/\s@\"']++@"), f"{REDACTED}@"),
    (re.compile(r"\beyJ[\w-]{8,}+(?:\.[\w-]++){1,2}+"), REDACTED),
    (
        re.compile(
            r"(?i)\b(authorization|password|passwd|x-api-key|api_key|access_token|client_secret)"
            r"([\"']?+\s*+[=:]\s*+[\"']?+)(?!bearer|basic)[^\s\"',;&<>]++"
        ),
        rf"\1\2{REDACTED}",
    ),
)


def redacted(text: str, known: Iterable[str] = ()) -> str:
    """Return the text without the known secrets and anything with the form of a credential."""
    text = text[:LONGEST_LOOKED_AT]
    for secret in sorted(known, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, REDACTED)
    for form, instead in _FORMS:
        text = form.sub(instead, text)
    return text


def bare(authorization: str) -> str:
    """Return the credential of an Authorization header without its scheme."""
    scheme, _, credential = authorization.partition(" ")
    return credential if credential and scheme.lower() in {"bearer", "basic"} else authorization


def sent_in(body: object) -> Iterator[str]:
    """Yield the values of Secrets and of environment variables, anywhere in a manifest."""
    if isinstance(body, Mapping):
        if body.get("kind") == "Secret" and isinstance(body.get("data"), Mapping):
            yield from (value for value in body["data"].values() if isinstance(value, str))
        for key, value in body.items():
            if key == "env" and isinstance(value, list):
                yield from _values(value)
            else:
                yield from sent_in(value)
    elif isinstance(body, list | tuple):
        for one in body:
            yield from sent_in(one)


def _values(variables: Iterable[Any]) -> Iterator[str]:
    for one in variables:
        if isinstance(one, Mapping) and not str(one.get("name")).startswith(OWN_VARIABLES):
            value = one.get("value")
            if isinstance(value, str):
                yield value
