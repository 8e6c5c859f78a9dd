"""Makes a Scenario of the tables of a scenario file, with defaults from its recording."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.values import Within
from headroom.scaling.values.policy import Policy
from headroom.simulator.arrivals.recording import RecordedService
from headroom.simulator.closed_loop import closed_loop
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.plant import Network, Server, ServiceSpec
from headroom.simulator.scenario import Fault, Scenario, Workload
from headroom.simulator.scenario_file.arrivals_kind import Library
from headroom.simulator.scenario_file.arrivals_tables import ArrivalsTable, RecordingTable
from headroom.simulator.scenario_file.generator_tables import UsersLoadTable
from headroom.simulator.scenario_file.plant_tables import (
    ClientsTable,
    ClusterTable,
    ColdStartTable,
    FaultTable,
    NetworkTable,
    ServerTable,
)
from headroom.simulator.scenario_file.policy_tables import ScalingTable, SloTable
from headroom.simulator.scenario_file.problems import Problem, placed
from headroom.simulator.scenario_file.table import Name, Table, Time


class ServiceTable(Table):
    """One service."""

    name: Name
    arrivals: ArrivalsTable
    server: ServerTable | None = None
    network: NetworkTable = NetworkTable()
    clients: ClientsTable = ClientsTable()
    slo: SloTable | None = None
    scaling: ScalingTable = ScalingTable()
    cold_start: ColdStartTable | None = None
    drain: Time | None = None


class ScenarioTable(Table):
    """The whole file."""

    name: Name
    tick: Annotated[Duration, Within("1ms", "1h")] | None = None
    cluster: ClusterTable = ClusterTable()
    service: Annotated[list[ServiceTable], Field(min_length=1, max_length=1000)]
    fault: Annotated[list[FaultTable], Field(max_length=1000, default_factory=list)]


def build(table: ScenarioTable, library: Library) -> Scenario:
    """Return the scenario; raises Problem at the first broken rule across tables."""
    workloads: dict[str, Workload] = {}
    for index, service in enumerate(table.service):
        if service.name in workloads:
            rule = f"must be unique; got {service.name} again"
            raise Problem(("service", index, "name"), rule)
        workloads[service.name] = _workload(("service", index), service, table, library)
    with placed("cluster", table=table.cluster):
        cluster = table.cluster.value()
    scenario = Scenario(name=table.name, workloads=tuple(workloads.values()), cluster=cluster)
    faults = (_fault(index, fault, scenario) for index, fault in enumerate(table.fault))
    return replace(scenario, faults=tuple(faults))


def _fault(index: int, table: FaultTable, scenario: Scenario) -> Fault:
    known = [workload.spec.name for workload in scenario.workloads]
    with placed("fault", index, table=table):
        fault = table.value()
        if fault.service is not None and fault.service not in known:
            raise ValueError(f"service must be one of {', '.join(known)}; got {fault.service}")
        if fault.start_s >= scenario.duration_s:
            raise ValueError(
                f"start must be before the load ends at {scenario.duration_s:g} s; "
                f"got {fault.start_s:g} s"
            )
    return fault


def _workload(
    at: tuple[str | int, ...], service: ServiceTable, table: ScenarioTable, library: Library
) -> Workload:
    recorded: RecordedService | None = None
    with placed(*at, "arrivals", table=service.arrivals):
        if isinstance(service.arrivals, RecordingTable):
            recorded = service.arrivals.recorded(library)
        arrivals = service.arrivals.value(service.name, library)
    server = _server(at, service, recorded)
    with placed(*at, "network", table=service.network):
        network = service.network.value()
        if recorded is not None and service.network.routing is None:
            network = replace(network, routing=recorded.policy.routing)
    with placed(*at, "clients", table=service.clients):
        clients = service.clients.value()
    advertised = service.server.advertised if service.server else None
    with placed(*at, "server", "advertised", table=advertised):
        claimed = advertised.value() if advertised else None
    policy = _policy(at, service, table, network, recorded)
    given: dict[str, Any] = {} if service.drain is None else {"drain_s": service.drain.seconds}
    cold_start = _cold_start(at, service, recorded)
    if cold_start is not None:
        given["cold_start"] = cold_start
    with placed(*at, "slo", "target"):
        spec = ServiceSpec(
            name=service.name,
            policy=policy,
            server=server,
            network=network,
            clients=clients,
            initial_replicas=service.scaling.initial_replicas,
            advertised=claimed,
            **given,
        )
    looped = isinstance(service.arrivals, UsersLoadTable)
    if looped != (clients.users is not None):
        rule = "arrivals of users and users of clients need one another; got only one of them"
        raise Problem((*at, "arrivals"), rule)
    return (
        closed_loop(spec, arrivals.duration_s) if looped else Workload(spec=spec, arrivals=arrivals)
    )


def _server(
    at: tuple[str | int, ...], service: ServiceTable, recorded: RecordedService | None
) -> Server:
    if service.server is not None:
        with placed(*at, "server", table=service.server):
            return service.server.value()
    cost = recorded.cost if recorded is not None else None
    if cost is None:
        rule = "is required unless a recording holds a measured cost"
        raise Problem((*at, "server"), rule)
    with placed(*at, "server"):
        return Server(
            fixed_s=cost.fixed_s,
            per_item_s=cost.per_item_s,
            max_batch=cost.max_batch,
            slots=cost.slots,
            cv=cost.cv,
        )


def _cold_start(
    at: tuple[str | int, ...], service: ServiceTable, recorded: RecordedService | None
) -> ColdStart | None:
    if service.cold_start is not None:
        with placed(*at, "cold_start", table=service.cold_start):
            return service.cold_start.value()
    if recorded is not None and recorded.cold_start_s is not None:
        with placed(*at, "cold_start"):
            return ColdStart.of(recorded.cold_start_s)
    return None


def _policy(
    at: tuple[str | int, ...],
    service: ServiceTable,
    table: ScenarioTable,
    network: Network,
    recorded: RecordedService | None,
) -> Policy:
    fields: dict[str, Any] = service.scaling.given() | {"routing": network.routing}
    if service.slo is not None:
        fields |= service.slo.given()
    if table.tick is not None:
        fields["tick_s"] = table.tick.seconds
    if service.cold_start is not None and service.cold_start.timeout is not None:
        fields["warmup_timeout_s"] = service.cold_start.timeout.seconds
    if recorded is not None:
        policy = replace(recorded.policy, **fields)
    elif service.slo is not None:
        policy = Policy(**fields)
    else:
        raise Problem((*at, "slo"), "is required unless arrivals are a recording")
    if policy.min_replicas > policy.max_replicas:
        got = f"{policy.min_replicas} and {policy.max_replicas}"
        rule = f"min_replicas must be <= max_replicas; got {got}"
        raise Problem((*at, "scaling", "min_replicas"), rule)
    return policy
