"""`headroom activator`: options are checked before anything is opened."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from free_ports import free_port
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


def test_activator_opens_as_many_files_as_it_may(tmp_path: Path) -> None:
    """Its bound on connections is above the 1024 that containers begin with."""
    command = ["sh", "-c", 'ulimit -Sn 256 && exec "$@"', "sh"]
    command += [sys.executable, "-m", "headroom", "activator", "--address", "127.0.0.1"]
    command += ["--operator", "https://127.0.0.1:1", "--operator-name", "operator"]
    command += ["--port", str(free_port()), "--token-file", str(tmp_path / "token")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"cannot get the services" in process.stderr.readline()
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        process.kill()
    assert soft == hard > 256
