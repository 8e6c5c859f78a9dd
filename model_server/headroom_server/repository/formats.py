"""Formats of weights: data for everyone, programs from trusted repositories, no pickles. Pure.

    safetensors    .safetensors   numbers and names; reading it runs no code
    export         .pt2           torch.export: reading it may run the code it contains
    aotinductor    .pt2           AOTInductor: native code that runs in this process

A program is loaded if the server trusts its repository *and* the bytes match the digest in
`model.toml`. Write access to the folder includes the digest: the digest proves that the file is the
described one, the server's setting permits the description's author to run code here.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath

DESCRIPTION = "model.toml"
TRUST = "HEADROOM_REPOSITORY_TRUSTED"

PICKLES = frozenset({".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".joblib"})


class Format(StrEnum):
    """The content of the weights file."""

    SAFETENSORS = "safetensors"
    EXPORT = "export"
    AOTINDUCTOR = "aotinductor"

    @property
    def is_program(self) -> bool:
        """Whether loading it runs code of the file's author."""
        return self is not Format.SAFETENSORS

    @property
    def suffix(self) -> str:
        """The file name's suffix."""
        return ".pt2" if self.is_program else ".safetensors"


def check_weights_name(name: str, kind: Format) -> str:
    """Return the name if it is a file next to the description, with the declared suffix.

    Raises:
        ValueError: with the reason and the remedy.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in PICKLES:
        raise ValueError(
            f"must not be a pickle, which runs code when it is read: save the state with "
            f"safetensors.torch.save_file as a .safetensors file; got {name!r:.100}"
        )
    if name.startswith(".") or {*name} & {"/", "\\", "\0"}:
        raise ValueError(f"must be the name of a file next to {DESCRIPTION}; got {name!r:.100}")
    if suffix == ".pt2" and not kind.is_program:
        raise ValueError(
            f"must not be a program with format {kind}: set format to 'export' or 'aotinductor', "
            f"inputs, outputs and its sha256, and {TRUST}=true on a server that may run it; got "
            f"{name!r:.100}"
        )
    if suffix != kind.suffix:
        raise ValueError(
            f"must have the suffix {kind.suffix} with format {kind}; got {name!r:.100}"
        )
    return name


def untrusted(kind: Format, *, trusted: bool) -> str | None:
    """Return why the server may not load this format; None if it may."""
    if kind.is_program and not trusted:
        return (
            f"format {kind} runs code when it is loaded: start the server with {TRUST}=true if "
            f"everyone who can write this repository may run code here, or use safetensors with "
            f"an architecture"
        )
    return None


def untrusted_class(architecture: str, *, trusted: bool) -> str | None:
    """Return why the server may not import this class; None if it may.

    An import runs the module, and any module that is installed can be named.
    """
    if trusted:
        return None
    return (
        f"architecture {architecture} imports a module: start the server with {TRUST}=true if "
        f"everyone who can write this repository may run code here, name the class in "
        f"HEADROOM_MODEL_CLASS, or use a registered architecture"
    )
