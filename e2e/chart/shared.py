"""Generated files of the chart; a test checks that they are up to date."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from chart import values_comments, values_table
from chart.paths import BASE, CHART, COMPONENT, README, VALUES

COPIES = ("crd.yaml", "rbac.yaml", "admission-policy.yaml")
"""Copies of deploy/base, because Helm reads no file outside the folder of the chart."""
GATEWAY = ("rbac.yaml", "certificates.yaml", "operator-xds.yaml", "gateway.yaml", "activator.yaml")
"""Copy of the gateway component as one file."""


def contents() -> dict[Path, str]:
    """Return the content of each file that `make chart` writes."""
    copied = {CHART / "files" / name: (BASE / name).read_text() for name in COPIES}
    gateway = "---\n".join((COMPONENT / name).read_text() for name in GATEWAY)
    copied[CHART / "files" / "gateway.yaml"] = gateway
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = VALUES.read_text()
    text = values_table.table(values_table.values(schema, yaml.safe_load(values)))
    return {
        **copied,
        README: values_table.put_in(README.read_text(), text),
        VALUES: values_comments.commented(values, schema),
    }
