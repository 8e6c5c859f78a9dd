"""Error answers of the gateway itself: reason and Retry-After."""

from __future__ import annotations

from typing import Any

from headroom.gateway.type_urls import Json

RETRY_AFTER_S = 1


OVERFLOW = "too many requests in flight for the replicas that are ready"


def build(overflow: str = OVERFLOW) -> Json:
    """Build the replies: JSON with a reason, like the model server's."""
    return {
        "mappers": [
            _mapper("UO", 429, overflow),
            _mapper("UH", 503, "no replica is ready"),
            _mapper("UF", 503, "no replica could be reached"),
            _mapper("UC", 503, "the replica closed the connection before it answered"),
            _mapper("URX", 503, "two replicas could not answer"),
        ],
        "body_format": _body("%LOCAL_REPLY_BODY%"),
    }


def _mapper(flag: str, status: int, words: str) -> Json:
    return {
        "filter": {"response_flag_filter": {"flags": [flag]}},
        "status_code": status,
        "headers_to_add": [{"header": {"key": "retry-after", "value": str(RETRY_AFTER_S)}}],
        "body_format_override": _body(words),
    }


def _body(words: str) -> dict[str, Any]:
    return {"json_format": {"error": words, "reason": "%RESPONSE_CODE_DETAILS%"}}
