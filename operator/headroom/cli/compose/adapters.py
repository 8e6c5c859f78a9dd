"""Opens the adapters of the operator, one per external system, and closes them at its end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection, OnCall
from headroom.adapters.gateways.gateway_scraper import GatewayScraper
from headroom.adapters.pods.pod_requester import PodRequester
from headroom.adapters.pods.pod_scraper import PodScraper
from headroom.adapters.recording_file import RecordingFile
from headroom.adapters.system_clock import SystemClock
from headroom.adapters.watches.waiting_events import WatchShares
from headroom.cli.compose.run_request import RunRequest
from headroom.controller.ports import Prometheus
from headroom.telemetry.recording import header_line

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """The open adapters."""

    clock: SystemClock
    api: KubernetesApi
    scraper: PodScraper
    gateway_pages: GatewayScraper
    requester: PodRequester
    prometheus: Mapping[str, Prometheus]
    watch_shares: WatchShares
    recording_file: RecordingFile | None
    """Records the ticks; None where no file is named."""


@asynccontextmanager
async def opened_adapters(request: RunRequest, on_call: OnCall) -> AsyncIterator[Adapters]:
    """Open the adapters; `on_call` counts the requests to the Kubernetes API.

    Raises ClusterError where there are no credentials, OSError where the file cannot be written.
    """
    async with AsyncExitStack() as stack:
        recording_file = _recording(request)
        if recording_file is not None:
            stack.enter_context(recording_file)
            _log.info("recording to %s, up to %d MiB", request.record, request.record_mib)
        shares = WatchShares()
        yield Adapters(
            clock=SystemClock(),
            watch_shares=shares,
            recording_file=recording_file,
            api=await stack.enter_async_context(
                KubernetesApi(KubernetesConnection(on_call), shares.loop)
            ),
            scraper=await stack.enter_async_context(PodScraper()),
            gateway_pages=await stack.enter_async_context(GatewayScraper()),
            requester=await stack.enter_async_context(PodRequester()),
            prometheus=await _prometheus(request, stack),
        )


def _recording(request: RunRequest) -> RecordingFile | None:
    if request.record is None:
        return None
    most_bytes = request.record_mib * 1024**2
    return RecordingFile(request.record, header=header_line(), most_bytes=most_bytes)


async def _prometheus(request: RunRequest, stack: AsyncExitStack) -> Mapping[str, Prometheus]:
    """Import the Prometheus client only where one is configured: it takes 20 MB."""
    if not request.prometheus:
        return {}
    from headroom.adapters.prometheus.prometheus_source import PrometheusSource  # noqa: PLC0415

    return {
        name: await stack.enter_async_context(
            PrometheusSource(name, urls, replica_labels=request.replica_labels)
        )
        for name, urls in request.prometheus.items()
    }
