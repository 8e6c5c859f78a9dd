"""What the chart holds a copy of, and what is written from it: the same at any time, by a test."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from chart import values_table
from chart.paths import BASE, CHART, COMPONENT, README

COPIES = ("crd.yaml", "rbac.yaml")
"""Of the plain manifests: Helm reads no file outside of the chart's folder."""
GATEWAY = ("rbac.yaml", "operator-xds.yaml", "gateway.yaml", "activator.yaml")
"""Of the component, in one file."""


def contents() -> dict[Path, str]:
    """Each file that `make chart` writes, as it should be."""
    copied = {CHART / "files" / name: (BASE / name).read_text() for name in COPIES}
    gateway = "---\n".join((COMPONENT / name).read_text() for name in GATEWAY)
    copied[CHART / "files" / "gateway.yaml"] = gateway
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    text = values_table.table(values_table.values(schema, defaults))
    return {**copied, README: values_table.put_in(README.read_text(), text)}
