"""PURE. What weights may be: data for everybody, programs for a trusted repository, never pickles.

    safetensors    .safetensors   numbers and names; reading it runs nothing
    export         .pt2           torch.export: reading it may run what it holds
    aotinductor    .pt2           AOTInductor: native code, run in this process

A program is loaded where the server was told to trust its repository *and* the bytes are those
that `model.toml` pins. Whoever can write the folder can write the pin too: the pin says that the
file is the one that was described, the server's setting says that the describer may run code here.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath

DESCRIPTION = "model.toml"
TRUST = "HEADROOM_REPOSITORY_TRUSTED"

PICKLES = frozenset({".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".joblib"})


class Format(StrEnum):
    """What the weights file holds."""

    SAFETENSORS = "safetensors"
    EXPORT = "export"
    AOTINDUCTOR = "aotinductor"

    @property
    def is_program(self) -> bool:
        """Whether loading it runs code of the file's author."""
        return self is not Format.SAFETENSORS

    @property
    def suffix(self) -> str:
        """How such a file's name ends."""
        return ".pt2" if self.is_program else ".safetensors"


def check_weights_name(name: str, kind: Format) -> str:
    """The name, where it is that of a file beside the description, of the kind that is declared.

    Raises:
        ValueError: saying why not, and what to do.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in PICKLES:
        raise ValueError(
            f"a pickle runs code when it is read, and is never loaded: save the state with "
            f"safetensors.torch.save_file as a .safetensors file; got {name!r:.100}"
        )
    if name.startswith(".") or {*name} & {"/", "\\", "\0"}:
        raise ValueError(f"the name of a file beside {DESCRIPTION}; got {name!r:.100}")
    if suffix == ".pt2" and not kind.is_program:
        raise ValueError(
            f"{name!r:.100} is a program: set format to 'export' or 'aotinductor', inputs, outputs "
            f"and its sha256, and {TRUST}=true on a server that may run it"
        )
    if suffix != kind.suffix:
        raise ValueError(f"format {kind} has the suffix {kind.suffix}; got {name!r:.100}")
    return name


def untrusted(kind: Format, *, trusted: bool) -> str | None:
    """Why a server may not load this; None where it may."""
    if kind.is_program and not trusted:
        return (
            f"format {kind} runs code when it is loaded: start the server with {TRUST}=true if "
            f"everybody who can write this repository may run code here, or ship safetensors with "
            f"an architecture"
        )
    return None
