"""The memory of the server at its bounds, in a cgroup of the size that the sample has.

    limit >= idle + 2 x arriving + 16 x largest JSON body + waiting bytes + connections x 50 kB

Arriving bytes count twice, because a body is copied once when it is complete; one body at a time
is parsed. `make reliability ARGS=attacks` has all attacks and measures how long probes wait, which
says nothing while other tests run; here are a few, for seconds.
"""

from __future__ import annotations

import pytest

from reliability.attacks import server

pytestmark = pytest.mark.clock

CLIENTS = 100


@pytest.mark.parametrize(
    ("model", "attacks"),
    [
        ("sample", ("v1 lists", "v2 objects", "head", "pipeline", "unread pages")),
        ("sample", ("gRPC fields", "gRPC filler")),
        ("sample", ("gRPC stream parts", "gRPC stream answers")),
        ("images", ("v1 numbers", "v2 binary", "unfinished", "chunks")),
        ("images", ("v2 keys", "v2 empty keys")),
    ],
)
async def test_server_survives_attacks_at_the_limit_of_the_sample(
    model: str, attacks: tuple[str, ...]
) -> None:
    found = await server.survive(server.MODELS[model], attacks, 2.0, CLIENTS)
    assert found.kills == 0
    assert found.peak_bytes < server.sample()[1]


async def test_refused_bodies_are_not_kept_until_the_garbage_collector_runs() -> None:
    found = await server.survive(server.MODELS["images"], ("v1 spaces",), 6.0, 2 * CLIENTS)
    assert found.kills == 0
    assert found.peak_bytes < 0.75 * server.sample()[1]
