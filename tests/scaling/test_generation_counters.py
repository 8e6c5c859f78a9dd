"""What the counters of generating pods added between scrapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fakes_scaling import sample
from headroom.scaling.generation.token_counters import Count, TokenCounters
from headroom.scaling.token_values import GenerationSample
from headroom.scaling.values import PodSample


def _sample(pod: str, time_s: float, arrivals: float) -> PodSample:
    page = GenerationSample(iterations=10.0 * arrivals)
    return replace(sample(pod=pod, time_s=time_s, arrivals=arrivals), generation=page)


FIRST = [_sample("a", 1.0, 5.0), _sample("b", 1.0, 7.0)]
SECOND = [_sample("a", 2.0, 6.0), _sample("a", 3.0, 9.0), _sample("b", 3.0, 9.0)]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_of_several_scrapes_of_one_pod_the_newest_counts(order: tuple[int, ...]) -> None:
    counters, _ = TokenCounters().advance(FIRST)
    counters, increase = counters.advance([SECOND[place] for place in order])
    assert (increase.total[Count.ARRIVALS], increase.total[Count.ITERATIONS]) == (6.0, 60.0)
    counters, increase = counters.advance([replace(one, time_s=5.0) for one in FIRST])
    assert sorted(increase.pods) == ["a", "b"]
    np.testing.assert_array_equal(increase.elapsed_s, [2.0, 2.0])
