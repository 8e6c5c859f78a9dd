"""A controller as the console's server sees it, for tests."""

from __future__ import annotations

import random

import pytest

from cluster_world import FakeClock, FakeCluster
from controller_world import FakeRecorder
from headroom.controller.controller import Controller
from pods_world import Pods

pytestmark = pytest.mark.clock


def controller() -> Controller:
    clock = FakeClock()
    cluster = FakeCluster(clock)
    return Controller(
        cluster=cluster,
        scraper=Pods(cluster, clock),
        clock=clock,
        recorder=FakeRecorder(),
        instance="operator-0",
        chance=random.Random(1),
    )
