"""Two valid scenario files: the smallest one, and one with every table."""

from __future__ import annotations

SMALL = """\
name = "small"
[[service]]
name = "vision"
[service.arrivals]
generator = "constant"
duration = "10m"
rps = 100
[service.server]
fixed = "6ms"
per_item = "0.5ms"
max_batch = 8
[service.slo]
target = "100ms"
"""

FULL = """\
name = "full"
tick = "1s"

[cluster]
gpus = 12
provision = "90s"

[[service]]
name = "vision"
drain = "20s"
arrivals = { generator = "ramp", duration = "1h", from_rps = 1, to_rps = 9.5, ramp_end = "30m" }

[service.server]
fixed = "6ms"
per_item = "0.5ms"
max_batch = 8
slots = 2
cv = 0.3
spread = "gamma"
advertised = { fixed = "4ms", per_item = "0.4ms", max_batch = 8 }

[service.network]
routing = "least-in-flight"
connections = 8
in_flight_cap = 16

[service.clients]
timeout = "2s"
deadline = "1s500ms"
max_waiting = 40

[service.slo]
percentile = 99
target = "100ms"
queue_depth = 4
utilization_ceiling = 0.7

[service.scaling]
min_replicas = 2
max_replicas = 11
initial_replicas = 3
priority = -5

[service.scaling.scale_up]
stabilization = "10s"
rate = { period = "1m", replicas = 4 }

[service.scaling.scale_down]
stabilization = "5m"
rate = { period = "2m", percent = 50 }

[service.cold_start]
phases = [
    { name = "pulling", median = "20s", spread = 1.5 },
    { name = "warming", median = "1m10s" },
]
timeout = "5m"

[[service]]
name = "text/chat"
[service.arrivals]
trace = "azure_llm_2023_conv"
start = "10m"
duration = "20m"
mean_rps = 12
[service.server]
fixed = "300ms"
[service.slo]
target = "2s"

[[fault]]
kind = "scrape-loss"
start = "10m"
duration = "2m"
share = 0.5
service = "vision"

[[fault]]
kind = "costly-requests"
start = "20m"
factor = 2
"""
