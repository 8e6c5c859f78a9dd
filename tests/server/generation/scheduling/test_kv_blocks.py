"""Blocks of keys and values: owners, order of eviction, and shared prefixes."""

from __future__ import annotations

import pytest

from headroom_server.generation.scheduling.iterations.memory_peak import peak_tokens
from headroom_server.generation.scheduling.memory.kv_blocks import BlockPool
from headroom_server.generation.scheduling.memory.kv_memory import KeyValueMemory
from headroom_server.generation.scheduling.memory.prefix_digests import extend
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.values import GenerationRequest

SIZE = 4
A, B, C = b"a", b"b", b"c"


def taken(pool: BlockPool, *digests: bytes) -> list[int]:
    """Take a block for each content, and name it."""
    blocks = []
    for digest in digests:
        block = pool.take()
        assert block is not None
        pool.name(block, digest)
        blocks.append(block)
    return blocks


def sequence(key: int, prompt: range, tenant: str = "") -> LiveSequence:
    request = GenerationRequest(key=key, prompt=tuple(prompt), max_tokens=8, tenant=tenant)
    return LiveSequence(request, 0.0)


def computed(memory: KeyValueMemory, one: LiveSequence) -> LiveSequence:
    """Start a sequence, and compute its prompt."""
    memory.start(one, memory.prefix(one))
    one.computed = len(one.tokens)
    memory.name_computed(one)
    return one


def test_least_recently_used_block_is_evicted_first() -> None:
    pool = BlockPool(2)
    (first,) = taken(pool, A)
    (second,) = taken(pool, B)
    pool.release([first])
    pool.release([second])
    pool.share([first])
    pool.release([first])
    assert pool.take() == second
    assert (pool.find(A), pool.find(B)) == (first, None)


def test_prompts_of_one_tenant_leave_another_its_prefix() -> None:
    memory = KeyValueMemory(12, SIZE, caching=True)
    hits = 0
    memory.release(computed(memory, sequence(0, range(4 * SIZE), tenant="steady")))
    for turn in range(1, 100):
        for part in range(4):
            new = 1000 * turn + 100 * part
            prompt = range(new, new + 2 * SIZE)
            memory.release(computed(memory, sequence(turn, prompt, tenant="flood")))
        steady = computed(memory, sequence(turn, range(4 * SIZE), tenant="steady"))
        hits += len(memory.prefix(steady))
        memory.release(steady)
    assert hits == 99 * 3, "all blocks of its prompt but the last, each time"
    assert memory.pool.available == 12


def test_end_of_a_prompt_is_evicted_before_its_beginning() -> None:
    pool = BlockPool(3)
    pool.release(taken(pool, A, B, C))
    pool.take()
    assert [pool.find(one) is not None for one in (A, B, C)] == [True, True, False]


def test_free_block_is_taken_before_a_cached_one() -> None:
    pool = BlockPool(2)
    pool.release(taken(pool, A))
    pool.take()
    assert pool.find(A) is not None
    assert (pool.used, pool.cached, pool.available) == (1, 1, 1)


def test_first_block_with_a_content_keeps_its_name() -> None:
    pool = BlockPool(2)
    first, second = taken(pool, A, A)
    assert pool.find(A) == first
    pool.release([second])
    assert pool.cached == 0, "the second has no name, so that nothing finds it"
    pool.release([first])
    assert pool.cached == 1


def test_shared_block_is_available_after_its_last_release_only() -> None:
    pool = BlockPool(1)
    (block,) = taken(pool, A)
    pool.share([block])
    pool.release([block])
    assert (pool.available, pool.take()) == (0, None)
    pool.release([block])
    assert pool.take() == block
    with pytest.raises(AssertionError, match="was released twice"):
        pool.release([block, block])


def test_pool_without_caching_forgets_what_is_released() -> None:
    pool = BlockPool(1, caching=False)
    pool.release(taken(pool, A))
    assert (pool.find(A), pool.cached, pool.available) == (None, 0, 1)


@pytest.mark.parametrize(
    ("tokens", "shared"),
    [
        pytest.param(SIZE, 0, id="its only block must be computed: a logit chooses the next token"),
        pytest.param(SIZE + 1, 1, id="one token after the first block"),
        pytest.param(2 * SIZE, 1, id="the last of two full blocks is computed"),
        pytest.param(2 * SIZE + 1, 2, id="both full blocks are shared"),
    ],
)
def test_equal_prompt_shares_full_blocks_but_computes_a_token(tokens: int, shared: int) -> None:
    memory = KeyValueMemory(8, SIZE, caching=True)
    first = computed(memory, sequence(1, range(tokens)))
    again = sequence(2, range(tokens))
    assert memory.prefix(again) == first.blocks[:shared]
    assert memory.prefix(sequence(3, range(tokens), tenant="other")) == []


def test_start_counts_held_blocks_as_shared_and_cached_ones_as_used() -> None:
    memory = KeyValueMemory(8, SIZE, caching=True)
    first = computed(memory, sequence(1, range(2 * SIZE + 1)))
    again = sequence(2, range(2 * SIZE + 1))
    assert memory.new_blocks(again, memory.prefix(again)) == 1
    memory.release(first)
    assert memory.new_blocks(again, memory.prefix(again)) == 3


def test_sequence_grows_only_beyond_its_blocks() -> None:
    memory = KeyValueMemory(3, SIZE, caching=True)
    one = sequence(1, range(SIZE + 1))
    memory.start(one, [])
    for tokens, used in ((SIZE + 1, 2), (2 * SIZE, 2), (2 * SIZE + 1, 3), (3 * SIZE, 3)):
        assert memory.grow(one, tokens)
        assert memory.pool.used == used
    assert not memory.grow(one, 3 * SIZE + 1)
    memory.release(one)
    assert (memory.pool.used, one.grown_tokens, one.computed) == (0, 0, 0)


def test_sequence_adopts_blocks_that_another_computed_meanwhile() -> None:
    memory = KeyValueMemory(8, SIZE, caching=True)
    waiting, first = sequence(1, range(2 * SIZE)), sequence(2, range(2 * SIZE))
    memory.start(waiting, memory.prefix(waiting))
    computed(memory, first)
    waiting.computed = 1
    assert memory.adopt(waiting) == 0, "it is in the middle of a block"
    waiting.computed = 0
    assert memory.adopt(waiting) == SIZE, "the last block is left: a token must be computed"
    assert waiting.blocks[0] == first.blocks[0]
    assert waiting.blocks[1] != first.blocks[1]
    assert memory.pool.used == 3


def test_names_of_blocks_depend_on_the_tenant_and_on_all_before_them() -> None:
    def names(tenant: str, tokens: list[int]) -> list[bytes]:
        chain: list[bytes] = []
        extend(chain, tenant, tokens, 2, len(tokens) // 2)
        return chain

    ours = names("a", [1, 2, 3, 4])
    assert names("a", [1, 2, 3, 4, 5]) == ours, "a block that is not full has no name"
    assert names("a", [1, 2, 3, 5])[0] == ours[0]
    assert not set(names("b", [1, 2, 3, 4])) & set(ours)
    assert names("a", [9, 2, 3, 4])[1] != ours[1]


def test_peak_is_reached_when_one_ends_while_those_that_last_longer_have_grown() -> None:
    """30 to come with 10 present, 10 to come with 50 present: 80 after the short one ends."""
    assert peak_tokens([(10.0, 30.0), (50.0, 10.0)]) == 80.0
    assert peak_tokens([]) == 0.0
