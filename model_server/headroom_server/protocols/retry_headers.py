"""Recognizes retries by the headers of clients and proxies. Pure.

| header | sent by | a retry |
|---|---|---|
| `x-retry-attempt` | clients that count their retries from 0 | 1 and more |
| `x-stainless-retry-count` | clients of OpenAI and Anthropic | 1 and more |
| `amz-sdk-request` | AWS SDKs: `attempt=2; max=3` | `attempt` 2 and more |
| `grpc-previous-rpc-attempts` | gRPC's own retries | 1 and more |
| `x-envoy-attempt-count` | Envoy and Istio, for the retries of a proxy | 2 and more |

These headers belong to others: a value that is not understood is no error, and no retry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NUMBER = re.compile(rb"\s*([0-9]{1,9})\s*")
_ATTEMPT = re.compile(rb"(?:^|[;,\s])attempt=([0-9]{1,9})(?:$|[;,\s])")

_FORMS: Mapping[bytes, tuple[re.Pattern[bytes], int]] = {
    b"x-retry-attempt": (_NUMBER, 0),
    b"x-stainless-retry-count": (_NUMBER, 0),
    b"amz-sdk-request": (_ATTEMPT, 1),
    b"grpc-previous-rpc-attempts": (_NUMBER, 0),
    b"x-envoy-attempt-count": (_NUMBER, 1),
}
"""Form by header, and the number in a first try."""

RETRY_HEADERS = frozenset(_FORMS)


def is_retry(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether any of the headers, in lower case, names a try after the first."""
    for name in RETRY_HEADERS.intersection(headers):
        form, first = _FORMS[name]
        value = headers[name]
        found = form.fullmatch(value) if form is _NUMBER else form.search(value)
        if found is not None and int(found[1]) > first:
            return True
    return False
