"""The files of the gateway's image match the code."""

from __future__ import annotations

import json
from pathlib import Path

from headroom.gateway.bootstrap.configuration import bootstrap
from headroom.gateway.bootstrap.operator_connection import secrets

SHIPPED = Path(__file__).parents[2] / "deploy" / "gateway"
TOKENS = "/var/run/secrets/headroom"


def test_shipped_bootstrap_matches_the_code() -> None:
    expected = bootstrap(
        xds_address="{xds_address}",
        token_folder=TOKENS,
        secret_folder="/opt/gateway",
        operator_name="{operator_name}",
    )
    assert json.loads((SHIPPED / "envoy.json").read_text()) == expected
    for name, content in secrets(TOKENS).items():
        assert json.loads((SHIPPED / name).read_text()) == content
