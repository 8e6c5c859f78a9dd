"""The page of Headroom's server, and changes of it in tests."""

from __future__ import annotations

import re

from headroom.profiles.headroom import HEADROOM
from headroom.scaling.values.observation import PodSample
from headroom.telemetry.headroom_page import read_sample
from support.pods_world import page

GENERATION = frozenset(HEADROOM.generation.metric_names() if HEADROOM.generation else ())
TOKEN_LATENCIES = {
    "headroom_time_to_first_token_seconds_bucket",
    "headroom_time_per_output_token_seconds_bucket",
}
RETRIED = 'headroom_requests_retried_total{model="resnet"} 6\n'
PAGE = page(model="resnet", served=40) + 'headroom_scrapes_total{model="resnet"} 7\n' + RETRIED
OPTIONAL = {
    "headroom_max_batch_size",
    "headroom_cost_fixed_seconds",
    "headroom_cost_per_item_seconds",
    "headroom_scrapes_total",
    "headroom_requests_retried_total",
}
NOT_ON_PAGE = GENERATION | TOKEN_LATENCIES | {"headroom_request_duration_seconds_sum"}
ON_PAGE = HEADROOM.metric_names - NOT_ON_PAGE | {"headroom_max_batch_size"}


def read(text: str, model: str = "resnet") -> PodSample:
    return read_sample(text, pod="uid-1", model=model, time_s=12.0)


def without(metric: str) -> str:
    return "".join(line for line in PAGE.splitlines(True) if not line.startswith(metric))


def with_value(metric: str, value: str) -> str:
    return re.sub(rf"^({metric}(?:{{[^}}]*}})?) .*$", rf"\1 {value}", PAGE, flags=re.MULTILINE)
