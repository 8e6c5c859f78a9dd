"""Reads the tensors of a folder of safetensors, one file or several with an index."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from headroom_server.engine import LoadError
from headroom_server.repository import files

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}\.safetensors")
"""Name of a file of weights in the same folder."""


class Checkpoint:
    """Tensors by name; each is read when it is asked for, so that memory holds it once."""

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device) -> None:
        """Find which file holds which tensor.

        Raises:
            LoadError: there are no weights, or the index is not valid.
        """
        self._folder = folder
        self._dtype = dtype
        self._device = device
        self._files = _index(folder)

    def read(self, name: str, *size: int) -> torch.Tensor:
        """Return a tensor, whose size must be `size`.

        Raises:
            LoadError: it is absent, of another size, or its file is damaged.
        """
        file = self._files.get(name)
        if file is None:
            raise LoadError(f"the weights must contain {name}; they do not")
        try:
            with _opened(self._folder, file) as opened:
                found = opened.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise LoadError(f"{file}: {error}") from error
        if tuple(found.shape) != size:
            raise LoadError(f"{name} must have the size {size}; got {tuple(found.shape)}")
        if not found.dtype.is_floating_point:
            raise LoadError(f"{name} must be of floating point; got {found.dtype}")
        moved: torch.Tensor = found.to(self._device, self._dtype)
        return moved


def _index(folder: Path) -> Mapping[str, str]:
    index = files.read(folder, folder / INDEX, files.MOST_JSON_BYTES)
    try:
        if index is None:
            with _opened(folder, SINGLE) as opened:
                return dict.fromkeys(opened.keys(), SINGLE)
        entries = json.loads(index)["weight_map"]
    except OSError as error:
        raise LoadError(f"{SINGLE} cannot be read: {error}") from error
    except SafetensorError as error:
        raise LoadError(f"{SINGLE} must be a whole file of safetensors: {error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LoadError(f"{INDEX} must be JSON with a weight_map: {error}") from error
    if not isinstance(entries, dict):
        raise LoadError(f"weight_map of {INDEX} must be an object")
    for file in entries.values():
        # the index may come from an untrusted repository
        if not isinstance(file, str) or not FILE.fullmatch(file):
            raise LoadError(f"{INDEX} must name files of its own folder; got {file!r:.100}")
    if SINGLE not in entries.values() and (folder / SINGLE).exists():
        # transformers reads the file, vLLM what the index names
        raise LoadError(f"{SINGLE} must be absent next to an {INDEX} of others; remove the older")
    return entries


def _opened(folder: Path, file: str) -> safe_open:
    return safe_open(files.regular(folder, folder / file), framework="pt", device="cpu")
