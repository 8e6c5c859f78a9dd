"""Connections of the controller and its ticks: everything they read, write and report through."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.controller.gather.metrics.metrics_reader import MetricsReader
from headroom.controller.ports import Clock, Cluster, Recorder
from headroom.controller.report.evaluation import DecisionListener
from headroom.controller.report.recording import Recording
from headroom.controller.sharing.accelerator_note import AcceleratorNote
from headroom.controller.warmup import WarmupDeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The cluster, the pods' metrics, the clock, and the listeners."""

    cluster: Cluster
    metrics: MetricsReader
    clock: Clock
    recorder: Recorder
    note: AcceleratorNote = field(default_factory=AcceleratorNote)
    """Note of a leader for the next one."""
    recording: Recording | None = None
    """Records what a simulation needs to replay the ticks."""
    listener: DecisionListener | None = None
    warmup: WarmupDeps | None = None
