"""`headroom activator`: what it is started with is checked before anything is opened."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from headroom.cli.app import app


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        pytest.param(
            ["--operator", "http://10.0.0.2:18001"], 2, "must begin with https://", id="no TLS"
        ),
        pytest.param(
            ["--operator", "https://$(HEADROOM_OPERATOR_XDS_SERVICE_HOST):18001"],
            1,
            "names a variable that is not set",
            id="the pod was there before the Service",
        ),
        pytest.param(["--drain", "soon"], 2, "duration", id="no duration"),
        pytest.param(["--requests", "0"], 2, "--requests", id="a bound of nothing"),
    ],
)
def test_activator_with_invalid_option_fails_with_rule(
    options: list[str], code: int, said: str
) -> None:
    wanted = ["activator", "--address", "10.0.0.1", "--operator", "https://10.0.0.2:18001"]
    wanted += ["--operator-name", "headroom-operator.headroom-system.svc"]
    result = CliRunner().invoke(app, [*wanted, *options])
    assert result.exit_code == code
    assert said in " ".join(result.output.split())
