"""Paths of the chart and of the manifests that it is compared with."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "headroom"
BASE = ROOT / "deploy" / "base"
COMPONENT = ROOT / "deploy" / "components" / "gateway"
README = CHART / "README.md"
VALUES = CHART / "values.yaml"
RUNBOOK = CHART / "RUNBOOK.md"
ALERTS = CHART / "monitoring" / "alerts.yaml"
ALERT_TESTS = CHART / "monitoring" / "alerts.test.yaml"
DASHBOARD = CHART / "monitoring" / "dashboard.json"
