"""The operator as a process.

Builds the adapters, hands them to the controller, and ends in time.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from pathlib import Path

from headroom.adapters.gateway_scraper import GatewayScraper
from headroom.adapters.inference_service_watch import InferenceServiceWatch
from headroom.adapters.kubernetes_api import KubernetesApi
from headroom.adapters.pod_requester import PodRequester
from headroom.adapters.pod_scraper import PodScraper
from headroom.adapters.recording_file import RecordingFile
from headroom.adapters.system_clock import SystemClock
from headroom.api.kind import GROUP, PLURAL, VERSION
from headroom.cli import warmth
from headroom.cli.allocator import give_big_blocks_back
from headroom.cli.options.console import ConsoleChoice, services, show
from headroom.cli.options.gateway import GatewayChoice
from headroom.cli.options.lease import LeaseChoice
from headroom.cli.routing import composed
from headroom.console.health import Health, watch_loop_lag
from headroom.console.instruments import Instruments
from headroom.console.prerequisites import Prerequisites
from headroom.console.read_model import ReadModel
from headroom.console.server import application, serve
from headroom.controller import permissions
from headroom.controller.controller import Controller
from headroom.controller.leadership import Candidate, Election
from headroom.controller.permissions import Permission
from headroom.controller.ports import Prometheus
from headroom.controller.sharing.ceilings import Caps
from headroom.resources.settings import Settings
from headroom.telemetry.recording import header_line

_log = logging.getLogger(__name__)

END_WITHIN_S = 5.0
"""After SIGTERM.

A write that is under way is finished or abandoned: the next start begins from the cluster.
"""
COLLECTED_AFTER = (100_000, 20, 50)
"""Containers made and not freed, then young collections, then middle ones.

With Python's own (700, 10, 10) every few LISTs have all objects of a thousand services looked at,
which takes half a second and finds nothing: they are in no cycle. A LIST makes up to 20 000 that
are freed by themselves; to look at those took a tenth of all CPU time.
"""


async def operate(
    namespaces: Sequence[str],
    *,
    tick_s: float,
    port: int,
    instance: str,
    lease: LeaseChoice | None,
    console: ConsoleChoice | None,
    gateway: GatewayChoice | None,
    record: Path | None,
    record_mib: int,
    prometheus: Mapping[str, Sequence[str]],
    replica_labels: Sequence[str],
    settings: Settings,
    caps: Caps,
) -> None:
    """Run until SIGTERM or SIGINT; record the ticks in a file where one is named.

    With a lease, decide while it is held; without one, always.

    Raises ClusterError where there are no credentials, OSError where the port is taken or the file
    cannot be written.
    """
    _configure_logging()
    give_big_blocks_back()
    gc.set_threshold(*COLLECTED_AFTER)
    gc.collect()
    gc.freeze()  # what has been imported stays: half of what a collection would look at
    instruments, clock = Instruments(), SystemClock()
    with _journal(record, record_mib) as journal:
        async with (
            KubernetesApi(on_call=instruments.called) as api,
            PodScraper() as scraper,
            GatewayScraper() as gateway_pages,
            PodRequester() as requester,
            _sources(prometheus, replica_labels) as sources,
        ):
            model = ReadModel(lambda: services(controller.cache))
            router, xds, desk = (
                composed(api, clock, gateway, namespaces, gateway_pages)
                if gateway
                else (None, None, None)
            )
            controller = Controller(
                cluster=api,
                scraper=scraper,
                clock=clock,
                recorder=instruments,
                instance=instance,
                namespaces=namespaces,
                tick_s=tick_s,
                journal=journal,
                onlooker=None if console is None else model,
                prometheus=sources,
                caps=caps,
                router=router,
                warmth=warmth.composed(api, requester, namespaces),
                settings=settings,
            )
            if desk is not None:
                desk.listen(on_held=controller.wake, on_change=controller.reroute)
            election = None if lease is None else _election(lease, api, clock, instruments)
            prerequisites = Prerequisites(api, _needed(namespaces, lease))
            watch = InferenceServiceWatch(GROUP, VERSION, PLURAL, namespaces)
            health = Health(
                controller, prerequisites=prerequisites.checks, standing=election, watch=watch
            )
            app = application(health, instruments)
            where = ", ".join(namespaces) or "all namespaces"
            _log.info("evaluating every %g s in %s", tick_s, where)
            if journal is not None:
                _log.info("recording in %s, up to %d MiB", record, record_mib)
            await _until_told_to_end(
                _decide(controller, election, instruments),
                watch.run(controller.observe, controller.cache.synced.wait, controller.doubt),
                prerequisites.watch(),
                serve(app, port),
                *([xds.serve(gateway.port)] if xds and gateway else []),
                *([desk.serve(gateway.activator_port)] if desk and gateway else []),
                show(console, model, api, clock.now_s),
                watch_loop_lag(instruments.lagged, health.lagged),
            )
    _log.info("ended")


@asynccontextmanager
async def _sources(
    urls: Mapping[str, Sequence[str]], replica_labels: Sequence[str]
) -> AsyncIterator[Mapping[str, Prometheus]]:
    """Import what speaks to a Prometheus only where one is named: it takes 20 MB."""
    async with AsyncExitStack() as stack:
        sources: dict[str, Prometheus] = {}
        if urls:
            from headroom.adapters.prometheus_source import PrometheusSource  # noqa: PLC0415

            for name, given in urls.items():
                source = PrometheusSource(name, given, replica_labels=replica_labels)
                sources[name] = await stack.enter_async_context(source)
        yield sources


def _journal(path: Path | None, most_mib: int) -> AbstractContextManager[RecordingFile | None]:
    if path is None:
        return nullcontext()
    return RecordingFile(path, header=header_line(), most_bytes=most_mib * 1024**2)


def _election(
    lease: LeaseChoice, api: KubernetesApi, clock: SystemClock, instruments: Instruments
) -> Election:
    return Election(
        leases=api,
        clocks=clock,
        namespace=lease.namespace,
        name=lease.name,
        candidate=Candidate(identity=lease.identity),
        observer=instruments,
    )


def _needed(namespaces: Sequence[str], lease: LeaseChoice | None) -> list[Permission]:
    needed = list(permissions.on_services(namespaces))
    if lease is not None:
        needed += permissions.on_lease(lease.namespace, lease.name)
    return needed


async def _decide(
    controller: Controller, election: Election | None, instruments: Instruments
) -> None:
    if election is None:
        instruments.led(leading=True, transitions=0)
        await controller.run()
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(controller.follow())
        group.create_task(election.run(controller.lead))


async def _until_told_to_end(*parts: Coroutine[None, None, None]) -> None:
    """Run the parts until a signal, or until one of them fails, which ends all."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    tasks = [asyncio.create_task(part) for part in parts]
    end = asyncio.create_task(told.wait())
    await asyncio.wait([*tasks, end], return_when=asyncio.FIRST_COMPLETED)
    failed = next((task for task in tasks if task.done()), None)
    for task in (*tasks, end):
        task.cancel()
    await asyncio.wait([*tasks, end], timeout=END_WITHIN_S)
    if failed is not None:
        await failed


def _configure_logging() -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # What ends a watch is said by whoever begins it again; kopf says each attempt with a traceback.
    logging.getLogger("kopf").setLevel(logging.CRITICAL)
    logging.captureWarnings(capture=True)
