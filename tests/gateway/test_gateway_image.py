"""The files of the gateway's image match the code."""

from __future__ import annotations

import json
from pathlib import Path

from headroom.gateway.bootstrap import bootstrap, secret

SHIPPED = Path(__file__).parents[2] / "deploy" / "gateway"
TOKENS = "/var/run/secrets/headroom"


def test_shipped_bootstrap_matches_the_code() -> None:
    expected = bootstrap(
        xds_address="{xds_address}", token_folder=TOKENS, secret_file="/opt/gateway/secret.json"
    )
    assert json.loads((SHIPPED / "envoy.json").read_text()) == expected
    assert json.loads((SHIPPED / "secret.json").read_text()) == secret(TOKENS)
