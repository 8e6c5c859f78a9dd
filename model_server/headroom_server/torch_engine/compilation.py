"""torch.compile: whether it can be used here, and where what it makes is kept.

The caches are content-addressed by torch itself. A folder per model, torch and GPU keeps what one
of them made out of the way of the others, and lets it be deleted with its model.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import shutil
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headroom_server.tensors import Signature


def obstacle(
    device_type: str,
    *,
    which: Callable[[str], str | None] = shutil.which,
    environ: Mapping[str, str] = os.environ,
) -> str | None:
    """What is missing for compiling on this kind of device; None where nothing is."""
    compiler = environ.get("CXX")
    if not any(which(name) for name in ((compiler,) if compiler else ("g++", "clang++"))):
        return f"no C++ compiler ({compiler or 'g++ or clang++'}) in this image"
    if device_type == "cuda" and importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    return None


def digest(model: object, signature: Signature) -> str:
    """Names the code and the shapes of a model, and not the values of its weights."""
    kind = type(model)
    parts = [f"{kind.__module__}.{kind.__qualname__}", repr(signature)]
    try:
        parts.append(inspect.getsource(kind))
    except (OSError, TypeError):
        parts.append("no source")
    for name, value in sorted(vars(model).items()):
        if isinstance(value, nn.Module):
            shapes = [(key, tuple(one.shape)) for key, one in value.state_dict().items()]
            parts.append(f"{name}: {value!r} {shapes}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def cache_folder(root: Path, model_digest: str, device: str) -> Path:
    """`<model>-<torch>-<device>` below the root."""
    name = "".join(c if c.isalnum() or c in ".+" else "_" for c in device)
    return root / f"{model_digest}-{torch.__version__}-{name}"


def use_cache(folder: Path, environ: MutableMapping[str, str]) -> bool:
    """Have torch keep what it compiles there; whether something lies there already.

    Raises:
        OSError: where the folder cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    warm = any(folder.iterdir())
    environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    environ["TRITON_CACHE_DIR"] = str(folder / "triton")
    return warm


def compiled(forward: Callable[[Any], Any], signature: Signature) -> Callable[[Any], Any]:
    """The function, compiled at its first call with each shape.

    Where the model's batch sizes are listed each is compiled for itself, else one program takes
    every size.
    """
    if not signature.batches:
        return torch.compile(forward)
    torch._dynamo.config.recompile_limit = max(
        torch._dynamo.config.recompile_limit,
        len(signature.batches) * max(1, len(signature.lengths)) + 1,
    )
    return torch.compile(forward, dynamic=False)
