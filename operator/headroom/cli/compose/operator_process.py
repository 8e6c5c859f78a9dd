"""The operator as a process: builds the adapters, hands them to the controller, ends in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headroom.adapters.gateway_scraper import GatewayScraper
from headroom.adapters.inference_service_watch import InferenceServiceWatch
from headroom.adapters.kubernetes_api import KubernetesApi
from headroom.adapters.pod_requester import PodRequester
from headroom.adapters.pod_scraper import PodScraper
from headroom.adapters.pod_watch import PodWatch
from headroom.adapters.recording_file import RecordingFile
from headroom.adapters.system_clock import SystemClock
from headroom.api.kind import GROUP, PLURAL, VERSION
from headroom.cli.compose.console import serve_console
from headroom.cli.compose.gateway import gateways_of
from headroom.cli.compose.process_setup import configure_memory, run_until_signal
from headroom.cli.run_options.console import ConsoleChoice
from headroom.cli.run_options.gateway import CertificateIssuer, GatewayChoice
from headroom.cli.run_options.lease import LeaseChoice
from headroom.console.read_model import ReadModel
from headroom.controller import permissions
from headroom.controller.controller import Controller
from headroom.controller.leadership import Candidate, Election
from headroom.controller.permissions import Permission
from headroom.controller.ports import Prometheus
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.ceilings import Caps
from headroom.controller.warmup import WarmupDeps
from headroom.ops.health import Health, watch_loop_lag
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.ops.prerequisites import Prerequisites
from headroom.ops.server import application, serve
from headroom.resources.names import WARMED_LABEL
from headroom.resources.settings import Settings
from headroom.telemetry.recording import header_line

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `headroom run` was started with."""

    namespaces: Sequence[str] = ()
    """Empty: all namespaces."""
    tick_s: float
    port: int
    instance: str
    lease: LeaseChoice | None = None
    """None: decide always, without an election."""
    console: ConsoleChoice | None = None
    gateway: GatewayChoice | None = None
    record: Path | None = None
    record_mib: int = 0
    prometheus: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """URLs by name."""
    replica_labels: Sequence[str] = ()
    settings: Settings
    caps: Caps


async def operate(options: RunOptions) -> None:
    """Run until SIGTERM or SIGINT; record the ticks in a file where one is named.

    With a lease, decide while it is held; without one, always.

    Raises ClusterError where there are no credentials, OSError where the port is taken or the file
    cannot be written.
    """
    configure_memory()
    instruments, clock = OperatorMetrics(), SystemClock()
    console, gateway, namespaces = options.console, options.gateway, options.namespaces
    with _recording(options.record, options.record_mib) as journal:
        async with (
            KubernetesApi(on_call=instruments.called) as api,
            PodScraper() as scraper,
            GatewayScraper() as gateway_pages,
            PodRequester() as requester,
            _prometheus(options.prometheus, options.replica_labels) as sources,
        ):
            model = ReadModel(lambda: service_objects(controller.cache))
            gateways = (
                gateways_of(
                    *(api, clock, gateway, namespaces, gateway_pages),
                    leads=lambda: election is None or election.leading,
                    known=instruments.certificates,
                )
                if gateway
                else None
            )
            controller = Controller(
                cluster=api,
                scraper=scraper,
                clock=clock,
                recorder=instruments,
                instance=options.instance,
                namespaces=namespaces,
                tick_s=options.tick_s,
                journal=journal,
                listener=None if console is None else model,
                prometheus=sources,
                caps=options.caps,
                router=gateways.router if gateways else None,
                warmup=_warmup(api, requester, namespaces),
                settings=options.settings,
            )
            if gateways is not None:
                gateways.desk.listen(on_held=controller.wake, on_change=controller.reroute)
            lease = options.lease
            election = None if lease is None else _election(lease, api, clock, instruments)
            prerequisites = Prerequisites(api, _permissions(options))
            watch = InferenceServiceWatch(GROUP, VERSION, PLURAL, namespaces)
            health = Health(
                controller,
                prerequisites=lambda: (
                    *prerequisites.checks(),
                    *([gateways.keeper.check()] if gateways else []),
                ),
                leader_status=election,
                watch=watch,
            )
            app = application(health, instruments)
            where = ", ".join(namespaces) or "all namespaces"
            _log.info("evaluating every %g s in %s", options.tick_s, where)
            if journal is not None:
                _log.info("recording to %s, up to %d MiB", options.record, options.record_mib)
            await run_until_signal(
                _decide(controller, election, instruments),
                watch.run(controller.observe, controller.cache.synced.wait, controller.doubt),
                prerequisites.watch(),
                serve(app, options.port),
                *(gateways.loops() if gateways else ()),
                serve_console(console, model, api, clock.now_s),
                watch_loop_lag(instruments.lagged, health.lagged),
            )
    _log.info("ended")


def service_objects(cache: ServiceCache) -> Iterator[dict[str, Any]]:
    """Yield the InferenceServices as last seen by the watch."""
    for uid in cache.uids():
        if (one := cache.get(uid)) is not None:
            yield one


@asynccontextmanager
async def _prometheus(
    urls: Mapping[str, Sequence[str]], replica_labels: Sequence[str]
) -> AsyncIterator[Mapping[str, Prometheus]]:
    """Import the Prometheus client only where one is configured: it takes 20 MB."""
    async with AsyncExitStack() as stack:
        sources: dict[str, Prometheus] = {}
        if urls:
            from headroom.adapters.prometheus_source import PrometheusSource  # noqa: PLC0415

            for name, given in urls.items():
                source = PrometheusSource(name, given, replica_labels=replica_labels)
                sources[name] = await stack.enter_async_context(source)
        yield sources


def _recording(path: Path | None, most_mib: int) -> AbstractContextManager[RecordingFile | None]:
    if path is None:
        return nullcontext()
    return RecordingFile(path, header=header_line(), most_bytes=most_mib * 1024**2)


def _warmup(api: KubernetesApi, requester: PodRequester, namespaces: Sequence[str]) -> WarmupDeps:
    """Build the sender of warm-up requests, and a watch of its pods in each namespace, or all."""
    watched = tuple(namespaces) or (None,)
    return WarmupDeps(
        requester=requester,
        watches=[PodWatch(api, selector=WARMED_LABEL, namespace=one) for one in watched],
    )


def _election(
    lease: LeaseChoice, api: KubernetesApi, clock: SystemClock, instruments: OperatorMetrics
) -> Election:
    return Election(
        leases=api,
        clocks=clock,
        namespace=lease.namespace,
        name=lease.name,
        candidate=Candidate(identity=lease.identity),
        observer=instruments,
    )


def _permissions(options: RunOptions) -> list[Permission]:
    namespaces, lease, gateway = options.namespaces, options.lease, options.gateway
    needed = list(permissions.on_services(namespaces))
    if options.settings.marks_pods:
        needed += permissions.on_marks(namespaces)
    if gateway is not None:
        needed += permissions.on_gateways(
            namespaces, gateway.namespace, reviews_tokens=gateway.reviews_tokens
        )
        issues = gateway.certificates is CertificateIssuer.OPERATOR
        needed += permissions.on_certificates(gateway.namespace, issues=issues)
    if lease is not None:
        needed += permissions.on_lease(lease.namespace, lease.name)
    return needed


async def _decide(
    controller: Controller, election: Election | None, instruments: OperatorMetrics
) -> None:
    if election is None:
        instruments.led(leading=True, transitions=0)
        await controller.run()
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(controller.follow())
        group.create_task(election.run(controller.lead))
