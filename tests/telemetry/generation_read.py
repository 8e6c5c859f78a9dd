"""Generation as read from the recorded pages of generating servers."""

from __future__ import annotations

from pathlib import Path

from headroom.profiles import PROFILES
from headroom.scaling.values.tokens import GenerationSample
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

PAGES = Path(__file__).parent / "pages"
BATCH = Batch(largest=16)
FILES = {
    "vllm": "vllm_kvfull",
    "dynamo": "dynamo_second",
    "llamacpp": "llamacpp_second",
    "trtllm": "trtllm_second",
    "headroom": "headroom_generation",
}


def text_of(server: str) -> str:
    return (PAGES / f"{FILES[server]}.prom").read_text()


def generation(server: str, text: str | None = None) -> GenerationSample:
    reader = PodSamples(PROFILES[server], None, None if server == "headroom" else BATCH)
    sample = None
    for time_s in (1.0, 2.0):  # what is derived needs two pages
        sample = reader.take(text or text_of(server), pod="u", time_s=time_s) or sample
        if server == "headroom":
            break
    assert sample is not None
    assert sample.generation is not None
    return sample.generation
