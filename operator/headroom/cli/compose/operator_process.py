"""The operator as a process: builds the controller and its servers, and ends in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from headroom.adapters.pods.port_probe import PortProbe
from headroom.adapters.watches.inference_service_watch import InferenceServiceWatch
from headroom.adapters.watches.pod_watch import PodWatch
from headroom.api.kind import GROUP, PLURAL, VERSION
from headroom.cli.compose.adapters import Adapters, opened_adapters
from headroom.cli.compose.console import serve_console
from headroom.cli.compose.gateway import Gateways, gateways_of
from headroom.cli.compose.process_setup import configure_memory, run_until_signal
from headroom.cli.compose.run_request import RunRequest
from headroom.console.read_model import ReadModel
from headroom.controller.connections import Connections
from headroom.controller.controller import Controller
from headroom.controller.gather.metrics.metrics_reader import MetricsReader
from headroom.controller.leadership import Candidate, Election
from headroom.controller.options import ControllerOptions
from headroom.controller.report.recording import Recording
from headroom.controller.routing.hand_back import HandBack
from headroom.controller.routing.ports import Routing
from headroom.controller.sharing.accelerator_note import AcceleratorNote
from headroom.controller.warmup import WarmupDeps
from headroom.ops.health import Health, watch_loop_lag
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.ops.prerequisites import Prerequisites
from headroom.ops.server import application, serve
from headroom.resources.names import WARMED_LABEL

_log = logging.getLogger(__name__)


async def operate(request: RunRequest) -> None:
    """Run until SIGTERM or SIGINT; record the ticks in a file where one is named.

    With a lease, decide while it is held; without one, always.

    Raises ClusterError where there are no credentials, OSError where the port is taken or the file
    cannot be written.
    """
    configure_memory()
    instruments = OperatorMetrics()
    async with opened_adapters(request, instruments.called) as adapters:
        await _run(request, adapters, instruments)
    _log.info("ended")


async def _run(request: RunRequest, adapters: Adapters, instruments: OperatorMetrics) -> None:
    api, namespaces = adapters.api, request.namespaces
    note = AcceleratorNote()
    election = _election(request, adapters, instruments, note)
    gateways = _gateways(request, adapters, instruments, election)
    model = ReadModel(lambda: controller.cache.objects())  # noqa: PLW0108  (the controller is built below)
    controller = _controller(request, adapters, instruments, gateways, model, note)
    if gateways is not None:
        gateways.activator_api.listen(on_held=controller.wake, on_change=controller.reroute)
    watch = InferenceServiceWatch(
        GROUP, VERSION, PLURAL, namespaces, unlisted=lambda: controller.unlisted
    )
    prerequisites = Prerequisites(api, request.permissions(), lambda: controller.unlisted)
    health = Health(
        controller,
        prerequisites=lambda: (
            *prerequisites.checks(),
            *([gateways.keeper.check()] if gateways else []),
        ),
        leader_status=election,
        watch=watch,
    )
    where = ", ".join(namespaces) or "all namespaces"
    _log.info("evaluating every %g s in %s", request.tick_s, where)
    await run_until_signal(
        _decide(controller, election, instruments),
        watch.run(controller.observe, controller.cache.synced.wait, controller.doubt),
        prerequisites.watch(),
        serve(application(health, instruments), request.port),
        *(gateways.loops() if gateways else ()),
        serve_console(request.console, model, api, adapters.clock.now_s),
        watch_loop_lag(instruments.lagged, health.lagged),
    )


def _election(
    request: RunRequest, adapters: Adapters, instruments: OperatorMetrics, note: AcceleratorNote
) -> Election | None:
    lease = request.lease
    if lease is None:
        return None
    return Election(
        leases=adapters.api,
        clocks=adapters.clock,
        namespace=lease.namespace,
        name=lease.name,
        candidate=Candidate(identity=lease.identity),
        observer=instruments,
        note=note,
    )


def _gateways(
    request: RunRequest,
    adapters: Adapters,
    instruments: OperatorMetrics,
    election: Election | None,
) -> Gateways | None:
    if request.gateway is None:
        return None
    return gateways_of(
        adapters.api,
        adapters.clock,
        request.gateway,
        request.namespaces,
        adapters.gateway_pages,
        adapters.watch_shares,
        leads=lambda: election is None or election.leading,
        known=instruments.certificates,
    )


def _controller(
    request: RunRequest,
    adapters: Adapters,
    instruments: OperatorMetrics,
    gateways: Gateways | None,
    model: ReadModel,
    note: AcceleratorNote,
) -> Controller:
    connections = Connections(
        cluster=adapters.api,
        metrics=MetricsReader(
            adapters.scraper, adapters.clock, adapters.prometheus, adapters.watch_shares.loop
        ),
        clock=adapters.clock,
        recorder=instruments,
        note=note,
        recording=None if adapters.recording_file is None else Recording(adapters.recording_file),
        listener=None if request.console is None else model,
        warmup=_warmup(adapters, request.namespaces),
    )
    options = ControllerOptions(
        instance=request.instance,
        namespaces=tuple(request.namespaces),
        tick_s=request.tick_s,
        caps=request.caps,
        settings=request.settings,
    )
    routing: Routing = (
        HandBack(probe=PortProbe(), clock=adapters.clock, namespaces=request.namespaces)
        if gateways is None
        else gateways.router
    )
    return Controller(connections, options, router=routing)


def _warmup(adapters: Adapters, namespaces: Sequence[str]) -> WarmupDeps:
    """Build the sender of warm-up requests, and a watch of its pods in each namespace, or all."""
    watched = tuple(namespaces) or (None,)
    return WarmupDeps(
        requester=adapters.requester,
        watches=[
            PodWatch(
                adapters.api, selector=WARMED_LABEL, namespace=one, shares=adapters.watch_shares
            )
            for one in watched
        ],
    )


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
