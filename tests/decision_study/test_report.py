"""Written report: tables, data and the plot, from results made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

from bench.figures import at_most
from decision_study import report
from decision_study.cells import CELLS
from decision_study.faults_cells import CLAIMS
from support.fakes_decision_study import Runs, record, records

CELL = "ramp/heavy/4/20s/Random"
RUNS: Runs = {
    CELL: {
        "keda": [(98.0, 20.0)],
        "keda:target_batches=0.2": [(99.0, 18.0)],
        "headroom": [(99.0, 11.0)],
        "clairvoyant": [(99.5, 10.0)],
        "ideal-reactive": [(99.0, 13.0)],
    },
    CELLS[0].name: {
        "headroom": [(98.0, 6.0)],
        "keda": [(98.0, 8.0)],
        "keda:target_batches=0.2": [(98.5, 7.0)],
        "clairvoyant": [(99.5, 5.0)],
        "ideal-reactive": [(99.0, 7.0)],
    },
}


def test_report_is_markdown_data_and_a_plot(tmp_path: Path) -> None:
    extras = [record(case.name, "headroom") for case in CLAIMS[:2]]
    found = report.of([*records(RUNS), *extras], [at_most("8 decide()", 0.5, 1, " ms")])
    assert found.field.cells == (CELLS[0].name, CELL)  # in the order of the list
    paths = report.write(found, tmp_path)
    assert [path.name for path in paths] == ["table.md", "proof.json", "front.svg"]

    table = (tmp_path / "table.md").read_text()
    assert "| 8 decide() | at most 1 ms | 0.5 ms | yes |" in table
    assert "| headroom | 98.0/1.20 | 99.0/1.10 | 98.5/1.15 |" in table
    assert "claim-1.5x-fast" in table

    data = json.loads((tmp_path / "proof.json").read_text())
    assert len(data["points"]) == 10
    assert {row["name"][0] for row in data["figures"]} == {"1", "2", "3", "4", "5", "7", "8"}

    plot = ET.parse(tmp_path / "front.svg").getroot()
    texts = ["".join(each.itertext()) for each in plot.iter() if each.tag.endswith("}text")]
    names = {"headroom", "keda", "clairvoyant", "ideal-reactive"}
    assert names <= set(texts)
    titles = ["".join(each.itertext()) for each in plot.iter() if each.tag.endswith("}title")]
    assert "headroom: misses 1.50 %, cost 1.15x" in titles
    assert any(title.startswith("keda(target_batches=0.2): misses 1.25 %") for title in titles)


def test_report_without_clairvoyant_has_tables_but_no_plot(tmp_path: Path) -> None:
    runs = {CELL: {name: RUNS[CELL][name] for name in ("headroom", "keda")}}
    paths = report.write(report.of(records(runs)), tmp_path)
    assert [path.name for path in paths] == ["table.md", "proof.json"]
    assert f"| {CELL} | - | - | 99.0/- |" in (tmp_path / "table.md").read_text()


def test_report_of_peers_alone_judges_nothing(tmp_path: Path) -> None:
    found = report.of(records({CELL: {name: RUNS[CELL][name] for name in ("keda", "clairvoyant")}}))
    assert found.figures == ()
    report.write(found, tmp_path)
    assert "| keda | 98.0/2.00 | 98.0/2.00 |" in (tmp_path / "table.md").read_text()
