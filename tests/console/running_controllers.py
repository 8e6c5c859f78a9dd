"""A controller as the console's server sees it, for tests."""

from __future__ import annotations

import random

import pytest

from headroom.controller.connections import Connections
from headroom.controller.controller import Controller
from headroom.controller.gather.metrics.metrics_reader import MetricsReader
from headroom.controller.options import ControllerOptions
from support.cluster_world import FakeClock, FakeCluster
from support.controller_world import FakeRecorder
from support.pods_world import Pods

pytestmark = pytest.mark.clock


def controller(cluster: FakeCluster | None = None) -> Controller:
    clock = FakeClock()
    cluster = cluster or FakeCluster(clock)
    metrics = MetricsReader(Pods(cluster, clock), clock, {})
    return Controller(
        Connections(cluster=cluster, metrics=metrics, clock=clock, recorder=FakeRecorder()),
        ControllerOptions(instance="operator-0"),
        chance=random.Random(1),
    )
