"""Accelerators of a namespace that a new operator cannot read count as the last leader counted."""

from __future__ import annotations

import pytest

from headroom.controller.leadership import Candidate
from headroom.controller.leadership.record import LeaseRecord
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.accelerator_note import MOST_BYTES, AcceleratorNote
from headroom.controller.sharing.caps import Caps
from headroom.controller.sharing.ceilings import Ceilings
from leadership.duel import Duel, duel
from support.service_world import body, service

CAPS = Caps(accelerators=10)
CLAIM = {"resource": "nvidia.com/gpu", "count": 2}


def cache_of(*unread: str) -> ServiceCache:
    cache = ServiceCache(on_change=lambda _: None, on_gone=lambda _: None)
    cache.unread = frozenset(unread)
    return cache


def room(ceilings: Ceilings) -> int:
    """Return how many replicas of two accelerators a new service may have."""
    limits = {"nvidia.com/gpu": 2}
    container = {"name": "c", "resources": {"limits": limits}}
    workload = {"spec": {"template": {"spec": {"containers": [container]}}}}
    return ceilings.of(service(spec__accelerator=CLAIM), workload, 0).replicas


def test_namespace_that_cannot_be_read_counts_as_noted_until_it_can() -> None:
    cache, note = cache_of("dark"), AcceleratorNote(text='{"dark": 6, "gone": 4}')
    ceilings = Ceilings(CAPS, cache, note)
    assert room(ceilings) == 2
    assert note.written() == '{"dark":6}', "the next leader knows it as well"
    there = {"replicas": 2, "readyReplicas": 2}
    cache.saw(
        body(metadata__namespace="dark", metadata__uid="d", spec__accelerator=CLAIM, status=there)
    )
    cache.unread = frozenset()
    assert room(ceilings) == 3
    assert note.written() == '{"dark":4}'
    ceilings.forget("d")
    assert room(ceilings) == 5
    assert note.written() == "{}", "what the Lease said is over"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"dark": "6"}', '{"dark": -6}', '{"other": 6}'])
def test_lease_without_a_count_of_the_namespace_counts_none(text: str) -> None:
    assert room(Ceilings(CAPS, cache_of("dark"), AcceleratorNote(text=text))) == 5


def test_leader_that_has_not_counted_leaves_the_lease_as_it_is() -> None:
    assert AcceleratorNote(text='{"dark": 6}').written() == ""


def test_note_that_is_too_long_leaves_the_lease_as_it_is() -> None:
    note = AcceleratorNote(held={f"namespace-{number}": 1 for number in range(MOST_BYTES // 10)})
    assert note.written() == ""


def test_note_passes_to_the_next_holder_of_the_lease() -> None:
    old = LeaseRecord(
        holder="", duration_s=1.0, transitions=3, acquired="", renewed="", note='{"dark":6}'
    )
    stored = LeaseRecord.parse(old.manifest("headroom-system", "headroom-operator"))
    claimed = Candidate(identity="two").with_record(stored, 0.0).claim(0.0, "now")
    assert claimed is not None
    assert claimed.note == '{"dark":6}'


def test_leader_writes_its_counts_into_the_lease_and_the_other_reads_them() -> None:
    async def scenario(world: Duel) -> None:
        world.one.note.held = {"dark": 6}
        await world.begin()
        assert world.other.note.known("dark") == 6

    duel(scenario)
