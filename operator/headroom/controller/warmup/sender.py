"""Sends one warm-up request to a pod, and returns its result."""

from __future__ import annotations

import asyncio
import logging

from headroom.controller.warmup.gate import GatedPod
from headroom.controller.warmup.ports import Requester, Response
from headroom.controller.warmup.progress import Fault, Progress, Terms
from headroom.controller.warmup.request import Inputs, UnknownRequest, WarmupRequest
from headroom.errors import RequestFailed

_log = logging.getLogger(__name__)

LONGEST_REQUEST_S = 120.0
LATE_REQUEST_S = 30.0
"""A request that is sent when the time is up may still find the pod cold."""
_SHOWN = 200
_TRY_LATER = frozenset({408, 425, 429})


async def send(
    requester: Requester,
    pod: GatedPod,
    request: WarmupRequest | Inputs,
    progress: Progress,
    terms: Terms,
) -> tuple[WarmupRequest | Inputs, Progress]:
    """Send one request; where the inputs had to be read first, give the request made of it."""
    now_s, kept = asyncio.get_running_loop().time, request
    left_s = progress.begun_s + terms.timeout_s - now_s()
    deadline_s = min(LONGEST_REQUEST_S, max(left_s, 2.0 * terms.max_latency_s, LATE_REQUEST_S))
    try:
        if isinstance(request, Inputs):
            metadata = await requester.get(_url(pod, request.path), deadline_s)
            if metadata.status != 200:
                return request, _refused(progress, request.path, metadata, now_s())
            request = request.request(metadata.text)
            kept = request if request.is_small else kept
        answer = await requester.post(
            _url(pod, request.path), request.body, request.content_type, deadline_s
        )
    except RequestFailed as error:
        said = f"{error}: see whether runtime.port ({pod.port}) is its port"
        return kept, progress.failed(Fault.UNANSWERED, said, now_s())
    except UnknownRequest as error:
        return kept, progress.failed(Fault.REFUSED, str(error), now_s())
    except Exception as error:  # noqa: BLE001  (it counts as a failure: warmup.timeout passes)
        _log.error(
            "the warm-up request of %s/%s failed: %s",
            pod.namespace,
            pod.name,
            type(error).__name__,
            exc_info=progress.failures == 0,
        )
        said = f"{request.path}: {type(error).__name__}: see the operator's log"
        return kept, progress.failed(Fault.FAILED, said, now_s())
    if 200 <= answer.status < 300:
        return kept, progress.answered(answer.seconds, now_s(), terms)
    return kept, _refused(progress, request.path, answer, now_s())


def _refused(progress: Progress, path: str, answer: Response, now_s: float) -> Progress:
    """Note an error response, with its remedy."""
    said = " ".join(answer.text.split())[:_SHOWN]
    words = f"{path} answered {answer.status}" + (f" ({said})" if said else "")
    if 400 <= answer.status < 500 and answer.status not in _TRY_LATER:
        remedy = "correct warmup.request, or model.name where the profile's request is sent"
        return progress.failed(Fault.REFUSED, f"{words}: {remedy}", now_s)
    return progress.failed(Fault.FAILED, f"{words}: see the pod's log", now_s)


def _url(pod: GatedPod, path: str) -> str:
    host = f"[{pod.address}]" if ":" in pod.address else pod.address
    return f"http://{host}:{pod.port}{path}"
