"""vLLM behind the port of a third-party engine: its parameters, and the meaning of its words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headroom_server.engine import DeviceLostError, LoadError
from headroom_server.errors import InvalidRequestError
from headroom_server.generation.third_party.ports import Produced, Step
from headroom_server.generation.values import (
    Alternative,
    FinishReason,
    GenerationRequest,
    SampledToken,
    Sampling,
)
from headroom_server.vllm_engine.model import VllmModel, produced_of, step_of
from headroom_server.vllm_engine.parameters import sampling_parameters
from support.third_party_world import END, LIMITS, FakeAsyncLLM, opening_of, output


def ask(**more: Any) -> GenerationRequest:
    fields: dict[str, Any] = {"key": 7, "prompt": (1, 2, 3), "max_tokens": 9}
    return GenerationRequest(**fields | more)


def test_sampling_has_vllms_names() -> None:
    sampling = Sampling(
        temperature=0.5, top_p=0.9, top_k=3, min_p=0.1, seed=-2, logprobs=0, logit_bias={4: 1.5}
    )

    found = sampling_parameters(ask(sampling=sampling, stop_tokens=frozenset({END, 4})))

    assert found["temperature"] == 0.5
    assert (found["top_p"], found["top_k"], found["min_p"]) == (0.9, 3, 0.1)
    assert found["seed"] == 2**63 - 2
    assert found["logprobs"] == 0
    assert found["logit_bias"] == {4: 1.5}
    assert found["stop_token_ids"] == [4, END]
    assert found["ignore_eos"]
    assert not found["detokenize"]
    assert found["max_tokens"] == 9
    assert "structured_outputs" not in found


@pytest.mark.parametrize(
    ("constraint", "structured"),
    [
        (("json_schema", '{"type": "object"}'), {"json": '{"type": "object"}'}),
        (("json_object", ""), {"json_object": True}),
        (("regex", "[a-z]"), {"regex": "[a-z]"}),
        (("grammar", "start: X"), {"grammar": "start: X"}),
        (("choice", '["a", "b"]'), {"choice": ["a", "b"]}),
    ],
)
def test_constraints_are_given_to_vllm_as_they_came(
    constraint: tuple[str, str], structured: object
) -> None:
    assert sampling_parameters(ask(constraint=constraint))["structured_outputs"] == structured


def test_a_minimum_above_the_maximum_is_cut() -> None:
    assert sampling_parameters(ask(min_tokens=50))["min_tokens"] == 9


def test_the_first_output_says_what_the_prefix_cache_supplied() -> None:
    assert produced_of(output([5], cached=32), first=True) == Produced((SampledToken(5),), None, 32)
    assert produced_of(output([5], "stop", cached=32), first=False) == Produced(
        (SampledToken(5),), FinishReason.STOP
    )


def test_logprobs_are_ordered_by_rank_and_the_chosen_one_may_be_outside() -> None:
    def one(logprob: float, rank: int) -> object:
        return SimpleNamespace(logprob=logprob, rank=rank)

    found = produced_of(output([9], logprobs=[{9: one(-4.0, 7), 3: one(-0.1, 1)}]), first=False)

    assert found.tokens == (SampledToken(9, -4.0, (Alternative(3, -0.1), Alternative(9, -4.0))),)


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_end_that_was_not_requested_is_a_failure(reason: str) -> None:
    with pytest.raises(RuntimeError, match=reason):
        produced_of(output([], reason), first=False)


def test_an_iteration_without_details_is_no_measurement() -> None:
    scheduler = SimpleNamespace(kv_cache_usage=0.5, num_waiting_reqs=2, iteration_details=None)

    assert step_of(scheduler, None) == Step(waiting=2, used_share=0.5)
    assert step_of(None, SimpleNamespace(num_preempted_reqs=3)) == Step(preemptions=3)


async def opened(engine: FakeAsyncLLM) -> VllmModel:
    model = VllmModel(opening_of(engine))
    assert model.open(lambda _: None) == LIMITS
    return model


async def test_priorities_become_vllms_with_batch_class_requests_last() -> None:
    engine = FakeAsyncLLM()
    model = await opened(engine)

    async for _ in model.generate(ask(key=1, priority=0)):
        pass
    async for _ in model.generate(ask(key=2, priority=9, batch_class=True)):
        pass

    assert engine.priorities == {"1": 0, "2": 19}


async def test_tenants_share_no_prefixes() -> None:
    engine = FakeAsyncLLM()
    model = await opened(engine)

    for key, tenant in enumerate(["a", "b", "a", ""]):
        async for _ in model.generate(ask(key=key, tenant=tenant)):
            pass

    first, second, again, without_tenant = (
        engine.prompts[str(key)].get("cache_salt") for key in range(4)
    )
    assert first == again
    assert len({first, second, without_tenant}) == 3
    assert without_tenant is None


async def test_leaving_the_iterator_aborts_the_request() -> None:
    engine = FakeAsyncLLM()
    model = await opened(engine)
    answer = model.generate(ask())

    await anext(answer)
    await answer.aclose()

    assert engine.aborted == ["7"]
    assert not engine.running


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        pytest.param(ask(sampling=Sampling(temperature=3.0)), None, id="its parameters"),
        pytest.param(ask(), ValueError("the prompt is too long"), id="when it takes it"),
    ],
)
async def test_what_vllm_refuses_is_the_clients_error(
    request_: GenerationRequest, error: Exception | None
) -> None:
    model = await opened(FakeAsyncLLM(error=lambda _: error))

    with pytest.raises(InvalidRequestError, match="vLLM does not take the request"):
        await anext(model.generate(request_))


async def test_an_error_of_a_dead_engine_is_its_loss() -> None:
    engine = FakeAsyncLLM(error=lambda _: RuntimeError("dead"))
    model = await opened(engine)

    with pytest.raises(RuntimeError, match="dead"):
        await anext(model.generate(ask()))
    engine.errored = True
    with pytest.raises(DeviceLostError):
        await anext(model.generate(ask()))


def test_an_engine_without_memory_is_refused() -> None:
    model = VllmModel(opening_of(FakeAsyncLLM(), LIMITS._replace(blocks=0)))

    with pytest.raises(LoadError, match="memory"):
        model.open(lambda _: None)


def test_closing_ends_vllms_processes() -> None:
    engine = FakeAsyncLLM()
    model = VllmModel(opening_of(engine))
    model.open(lambda _: None)

    model.close()
    model.close()

    assert engine.shut_down
