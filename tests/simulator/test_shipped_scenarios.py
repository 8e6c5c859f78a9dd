"""The shipped scenarios: they load, cover every kind, and are what their page says."""

from __future__ import annotations

from importlib.resources import files

import pytest

from headroom.simulator.arrivals import PoissonArrivals
from headroom.simulator.campaign import shipped
from headroom.simulator.scenario_file import load_scenario, parse_scenario

SHIPPED = shipped()


class TestShipped:
    @pytest.mark.parametrize("name", SHIPPED)
    def test_shipped_scenario_loads_with_arrivals(self, name: str) -> None:
        scenario = load_scenario(SHIPPED[name])
        assert scenario.name == name
        for workload in scenario.workloads:
            first = next(workload.arrivals.chunks(1))
            assert first.size > 0
            busiest = getattr(workload.arrivals, "mean_rps", 0.0) / workload.spec.server.full_rps
            assert 0.5 < busiest < 10  # replicas that the mean keeps busy: small, and not idle

    def test_shipped_scenarios_cover_all_kinds(self) -> None:
        assert SHIPPED.keys() >= {
            "step", "ramp", "spikes", "diurnal", "on-off", "llm-hour", "servegen", "worldcup",
            "azure-functions", "shared-pool", "llm-d-ramp", "fault-scrape-loss",
            "fault-metrics-restart", "fault-half-unscraped", "fault-slow-pod", "fault-node-loss",
        }  # fmt: skip

    def test_shipped_llm_d_ramp_is_the_published_one(self) -> None:
        workload = load_scenario(SHIPPED["llm-d-ramp"]).workloads[0]
        assert isinstance(workload.arrivals, PoissonArrivals)
        assert workload.arrivals.profile.start_rps.tolist() == [2, 4, 6, 8, 10, 4, 1]
        assert workload.arrivals.duration_s == 42 * 60
        assert workload.spec.server.full_rps == pytest.approx(1.45, abs=0.005)
        assert workload.spec.cold_start.median_s == pytest.approx(100)
        assert (workload.spec.policy.min_replicas, workload.spec.policy.max_replicas) == (3, 8)

    def test_readme_of_scenarios_lists_all_and_its_example_parses(self) -> None:
        page = files("headroom.simulator.scenarios").joinpath("README.md").read_text()
        assert [name for name in SHIPPED if name not in page] == []
        example = page.split("```toml\n")[1].split("```")[0]
        assert parse_scenario(example, "example").workloads[0].arrivals.duration_s == 1200
