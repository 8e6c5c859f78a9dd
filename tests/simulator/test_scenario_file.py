"""Scenario files: the meaning of their keys, and the recordings that they name."""

# ruff: noqa: E501  (a row of a table is one line)

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy, RateLimit, Routing
from headroom.simulator.arrivals import PoissonArrivals
from headroom.simulator.clients import Clients
from headroom.simulator.cold_start import ColdStart, Phase
from headroom.simulator.plant import Cluster, Network, Server, Spread
from headroom.simulator.scenario import Fault, FaultKind, Scenario
from headroom.simulator.scenario_file import ScenarioError, load_scenario, parse_scenario
from headroom.telemetry.recording import header_line, service_line, tick_line
from simulator.scenario_texts import FULL, SMALL


def test_scenario_keys_become_their_values() -> None:
    scenario = parse_scenario(FULL, "full.toml")
    vision, chat = scenario.workloads
    assert (scenario.name, scenario.duration_s) == ("full", 3600.0)
    assert scenario.cluster == Cluster(gpus=12, provision_s=90.0)
    assert vision.spec.policy == Policy(
        latency_target_s=0.1,
        latency_percentile=0.99,
        queue_depth=4,
        utilization_ceiling=0.7,
        min_replicas=2,
        max_replicas=11,
        priority=-5,
        scale_up_stabilization_s=10.0,
        scale_up_rate=RateLimit(period_s=60.0, replicas=4),
        scale_down_stabilization_s=300.0,
        scale_down_rate=RateLimit(period_s=120.0, percent=50),
        tick_s=1.0,
        routing=Routing.LEAST_IN_FLIGHT,
        warmup_timeout_s=300.0,
    )
    assert vision.spec.server == Server(
        fixed_s=0.006, per_item_s=0.0005, max_batch=8, slots=2, cv=0.3, spread=Spread.GAMMA
    )
    assert vision.spec.advertised == Server(fixed_s=0.004, per_item_s=0.0004, max_batch=8)
    assert vision.spec.network == Network(
        routing=Routing.LEAST_IN_FLIGHT, connections=8, in_flight_cap=16
    )
    assert vision.spec.clients == Clients(timeout_s=2.0, deadline_s=1.5, max_waiting=40)
    assert vision.spec.cold_start == ColdStart(
        phases=(
            Phase(name="pulling", median_s=20.0, spread=1.5),
            Phase(name="warming", median_s=70.0),
        )
    )
    assert (vision.spec.initial_replicas, vision.spec.drain_s) == (3, 20.0)
    assert isinstance(vision.arrivals, PoissonArrivals)
    assert vision.arrivals.profile.edges_s.tolist() == [0, 1800, 3600]
    assert vision.arrivals.profile.end_rps.tolist() == [9.5, 9.5]
    assert vision.arrivals.stream == "vision"
    assert chat.spec.policy == Policy(latency_target_s=2.0, tick_s=1.0)
    assert chat.arrivals.duration_s == 1200.0
    count = sum(times.size for times in chat.arrivals.chunks(1))
    assert count == pytest.approx(14_400, rel=0.03)
    assert scenario.faults == (
        Fault(kind=FaultKind.SCRAPE_LOSS, start_s=600, duration_s=120, share=0.5, service="vision"),
        Fault(kind=FaultKind.COSTLY_REQUESTS, start_s=1200, factor=2),
    )


CLOSED = SMALL.replace(
    'generator = "constant"\nduration = "10m"\nrps = 100\n',
    'generator = "users"\nduration = "10m"\n',
)


def test_clients_have_their_connections_users_and_retries() -> None:
    text = (
        CLOSED
        + """
[service.clients]
connections = 64
connection_requests = 100
connection_idle = "30s"
users = [{ at = "0s", users = 10 }, { at = "1m", users = 40 }]
think = "2s"
retries = 3
backoff = "200ms"
retries_marked = true
"""
    )
    (workload,) = parse_scenario(text, "s.toml").workloads
    assert workload.spec.clients == Clients(
        connections=64,
        connection_requests=100,
        connection_idle_s=30.0,
        users=((0.0, 10), (60.0, 40)),
        think_s=2.0,
        retries=3,
        backoff_s=0.2,
        retries_marked=True,
    )
    assert workload.arrivals.duration_s == 600.0
    demand = sum(times.size for times in workload.arrivals.chunks(1))
    assert demand == pytest.approx((60 * 10 + 540 * 40) / 2.01, rel=0.01)


def test_missing_keys_have_defaults_of_the_plant() -> None:
    workload = parse_scenario(SMALL, "small.toml").workloads[0]
    assert workload.spec.policy == Policy(latency_target_s=0.1)
    assert workload.spec.server == Server(fixed_s=0.006, per_item_s=0.0005, max_batch=8)
    assert workload.spec.network == Network()
    assert workload.spec.cold_start == ColdStart.of(60.0)
    assert workload.spec.drain_s == 60.0


@pytest.mark.parametrize(
    ("arrivals", "mean_rps"),
    [
        ('generator = "step"\nduration = "1h"\nbefore_rps = 1\nafter_rps = 3\nat = "30m"', 2.0),
        ('generator = "ramp"\nduration = "1h"\nfrom_rps = 0\nto_rps = 4', 2.0),
        ('generator = "stages"\nstages = [{duration = "1h", rps = 1}, {duration = "1h", rps = 1, to_rps = 5}]', 2.0),
        ('generator = "spikes"\nduration = "1h"\nbase_rps = 1\npeak_rps = 11\nevery = "10m"\nlasting = "1m"\nfirst = "0s"', 2.0),
        ('generator = "diurnal"\nduration = "24h"\nlow_rps = 1\nhigh_rps = 3\nphase = "3h"', 2.0),
        ('generator = "on-off"\nduration = "1h"\non_rps = 5\noff_rps = 1\nmean_on = "10s"\nmean_off = "30s"', 2.0),
        ('trace = "servegen_deepseek_r1_600s"\nscale = 0.1', 1.6015),
        ('trace = "mooncake_conversation_spread"', 3.4),
    ],
)  # fmt: skip
def test_arrivals_of_every_kind_have_their_mean(arrivals: str, mean_rps: float) -> None:
    constant = 'generator = "constant"\nduration = "10m"\nrps = 100'
    scenario = parse_scenario(SMALL.replace(constant, arrivals), "s.toml")
    stream = scenario.workloads[0].arrivals
    count = sum(times.size for times in stream.chunks(1))
    expected = mean_rps * stream.duration_s
    assert count == pytest.approx(expected, abs=5 * np.sqrt(8 * expected))


def test_trace_paths_are_relative_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "mine.csv").write_text("arrival_s\n1\n2\n2.5\n")
    file = tmp_path / "s.toml"
    file.write_text(re.sub(r"generator.*\nduration.*\nrps.*", 'trace = "traces/mine.csv"', SMALL))
    arrivals = load_scenario(file).workloads[0].arrivals
    assert np.concatenate(list(arrivals.chunks(1))).tolist() == [1.0, 2.0, 2.5]


class TestRecordings:
    POLICY = Policy(
        latency_target_s=0.25, max_replicas=9, routing=Routing.LEAST_IN_FLIGHT, tick_s=2.0
    )
    COST = CostModel(fixed_s=0.02, per_item_s=0.0015, max_batch=16)

    def scenario(self, folder: Path, tables: str, cost: CostModel | None = COST) -> Scenario:
        ticks = [tick_line("shop/ranker", 50.0 + 2 * i, 40, 3) for i in range(31)]
        lines = [header_line(), service_line("shop/ranker", self.POLICY, cost, 61.5), *ticks]
        (folder / "rec.jsonl").write_text("".join(lines))
        text = f'name = "r"\n[[service]]\nname = "ranker"\n{tables}'
        return parse_scenario(text, "r.toml", folder=folder)

    def test_recording_alone_makes_a_scenario(self, tmp_path: Path) -> None:
        found = self.scenario(tmp_path, 'arrivals = { recording = "rec.jsonl" }').workloads[0]
        assert found.spec.policy == self.POLICY
        assert found.spec.network.routing is Routing.LEAST_IN_FLIGHT
        assert found.spec.server == Server(fixed_s=0.02, per_item_s=0.0015, max_batch=16)
        assert found.spec.cold_start.median_s == pytest.approx(61.5)
        assert sum(times.size for times in found.arrivals.chunks(1)) == 30 * 40

    def test_scenario_keys_override_the_recording(self, tmp_path: Path) -> None:
        tables = (
            'arrivals = { recording = "rec.jsonl", scale = 2 }\n'
            'slo = { target = "300ms" }\nscaling = { max_replicas = 30 }\n'
            'server = { fixed = "30ms" }\nnetwork = { routing = "random" }\n'
            'cold_start = { total = "9s" }\n'
        )
        found = self.scenario(tmp_path, tables).workloads[0]
        assert found.spec.policy.latency_target_s == 0.3
        assert (found.spec.policy.max_replicas, found.spec.policy.routing) == (30, Routing.RANDOM)
        assert found.spec.server.fixed_s == 0.03
        assert found.spec.cold_start.median_s == pytest.approx(9.0)
        assert sum(times.size for times in found.arrivals.chunks(1)) == 30 * 80

    @pytest.mark.parametrize(
        ("tables", "cost", "message"),
        [
            ('arrivals = { recording = "no.jsonl" }', COST, "line 4: service[0].arrivals.recording: recording must be a readable file; got 'no.jsonl': No such file"),
            ('arrivals = { recording = "rec.jsonl", service = "x" }', COST, "line 4: service[0].arrivals.service: service must be one of the recorded shop/ranker; got x"),
            ('arrivals = { recording = "rec.jsonl" }', None, "line 2: service[0].server: is required unless a recording holds a measured cost"),
        ],
        ids=["no file", "another service", "nothing measured"],
    )  # fmt: skip
    def test_missing_parts_of_a_recording_are_named(
        self, tmp_path: Path, tables: str, cost: CostModel | None, message: str
    ) -> None:
        with pytest.raises(ScenarioError, match=re.escape(message)):
            self.scenario(tmp_path, tables, cost)
