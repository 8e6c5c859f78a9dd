"""All profiles by their name in `spec.runtime.profile`."""

from __future__ import annotations

from headroom.profiles.dynamo import DYNAMO
from headroom.profiles.headroom import HEADROOM
from headroom.profiles.llamacpp import LLAMACPP
from headroom.profiles.mlserver import MLSERVER
from headroom.profiles.mosec import MOSEC
from headroom.profiles.ray import RAY
from headroom.profiles.sglang import SGLANG
from headroom.profiles.tei import TEI
from headroom.profiles.tgi import TGI
from headroom.profiles.torchserve import TORCHSERVE
from headroom.profiles.triton import TRITON
from headroom.profiles.trtllm import TRTLLM
from headroom.profiles.values import Profile
from headroom.profiles.vllm import VLLM

PROFILES = {
    one.name: one
    for one in (
        *(HEADROOM, TRITON, VLLM, SGLANG, TRTLLM, TGI, LLAMACPP, DYNAMO, TEI),
        *(RAY, MLSERVER, TORCHSERVE, MOSEC),
    )
}
CUSTOM = "custom"
"""The profile whose metrics the resource defines."""


def profile_named(name: str) -> Profile:
    """Return a profile; raise KeyError for an unknown name, including `custom`."""
    return PROFILES[name]
