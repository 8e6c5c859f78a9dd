"""Settings of a generating server have an effect, or are refused with what to do instead."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web

from headroom_server.caching.feature_values import FeatureKind
from headroom_server.caching.flights import Source
from headroom_server.caching.generation_cache import Question
from headroom_server.engine import LoadError
from headroom_server.generating_server import build_generator
from headroom_server.generation.values import GenerationLimits
from headroom_server.generation_composition.caches import build_caches
from headroom_server.generation_composition.engines import build_engine, build_executor
from headroom_server.generation_composition.settings_rules import check_applicable, classes_of
from headroom_server.protocols.request_options import SloClass
from headroom_server.repository.random_llama import LlamaSize, write_random_llama
from headroom_server.settings_sources import InvalidSettingsError
from support.composed_generation import composed, settings_of
from support.loopback import on_loopback

pytestmark = pytest.mark.clock
PROMPT = list(range(1, 40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("models") / "model"
    write_random_llama(found)
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("models") / "small"
    write_random_llama(found, LlamaSize(hidden_size=32, layers=1), seed=1)
    return found


def limits(folder: Path, **fields: object) -> GenerationLimits:
    executor = build_executor(settings_of(folder, context_tokens=256, **fields))
    try:
        return executor.load()
    finally:
        executor.unload()


def test_number_format_decides_how_many_tokens_fit_the_memory(folder: Path) -> None:
    wide, narrow = (
        limits(folder, dtype=one, kv_cache_bytes=1 << 18, max_sequences=512)
        for one in ("float32", "bfloat16")
    )
    assert narrow.blocks == 2 * wide.blocks


async def test_int8_weights_change_probabilities_a_little(folder: Path) -> None:
    found: list[Sequence[float]] = []
    for int8 in (False, True):
        async with composed(settings_of(folder, dtype="float32", int8_weights=int8)) as world:
            answer = await world.complete(PROMPT, max_tokens=1, logprobs=3)
            alternatives = answer["choices"][0]["logprobs"]["top_logprobs"][0]
            found.append(sorted(alternatives.values()))
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], abs=0.1)


async def test_draft_model_guesses_ahead_and_the_tokens_stay_the_same(
    folder: Path, small: Path
) -> None:
    answers, accepted, rejected = [], [], []
    for draft in (None, folder, small):
        drafting = {} if draft is None else {"draft_model_uri": f"file://{draft}", "max_drafts": 4}
        async with composed(settings_of(folder, dtype="float32", **drafting)) as world:
            answer = await world.complete(PROMPT, max_tokens=60, ignore_eos=True)
            answers.append(answer["choices"][0]["text"])
            counts = world.generator.engine.statistics()
            accepted.append(counts.accepted_tokens)
            rejected.append(counts.rejected_tokens)
    assert answers[0] == answers[1] == answers[2]
    assert accepted[0] + rejected[0] == 0
    # the model itself guesses every token right, until the scheduler knows that it does not pay
    assert accepted[1] > 0 == rejected[1]
    assert accepted[2] + rejected[2] > 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"devices": "0,1"}, "HEADROOM_DEVICES must name one device .* got 0,1: run a replica per"),
        ({"model_class": "a:B"}, "HEADROOM_MODEL_CLASS must be empty .* got a:B"),
        ({"models": "bert"}, "HEADROOM_MODELS must be empty .* got bert"),
        ({"model_control": "explicit"}, "HEADROOM_MODEL_CONTROL must be none .* restart"),
        ({"engine": "generation-emulated", "dtype": "float16"}, "HEADROOM_DTYPE must be unset"),
        (
            {"engine": "generation-emulated", "int8_weights": True},
            "HEADROOM_INT8_WEIGHTS must be unset",
        ),
        ({"engine": "vllm", "decode_graphs": False}, "HEADROOM_DECODE_GRAPHS must be unset"),
    ],
)
def test_setting_without_an_effect_is_refused(
    folder: Path, fields: dict[str, object], message: str
) -> None:
    with pytest.raises(LoadError, match=message):
        check_applicable(settings_of(folder, **fields))


def test_draft_model_without_drafts_says_what_to_set(folder: Path) -> None:
    with pytest.raises(InvalidSettingsError, match="HEADROOM_MAX_DRAFTS must be above 0"):
        settings_of(folder, draft_model_uri=f"file://{folder}")


def test_draft_model_that_does_not_exist_is_named(folder: Path, tmp_path: Path) -> None:
    settings = settings_of(folder, draft_model_uri=f"file://{tmp_path}", max_drafts=2)
    with pytest.raises(LoadError, match="HEADROOM_DRAFT_MODEL_URI must be a Hugging Face folder"):
        build_executor(settings)


def test_device_that_this_machine_lacks_is_named(folder: Path) -> None:
    with pytest.raises(LoadError, match="HEADROOM_DEVICES must be devices of this machine"):
        build_executor(settings_of(folder, devices="7"))


def test_classes_are_built_in_and_configured(folder: Path) -> None:
    given = '{"gold": {"priority": 1, "first_token_deadline_s": 0.5}}'
    classes = classes_of(settings_of(folder, deadline_s=9, slo_classes=given))
    assert classes["interactive"] == classes["default"] == SloClass(deadline_s=9)
    assert classes["batch"] == SloClass(batch=True)
    assert classes["gold"] == SloClass(priority=1, first_token_deadline_s=0.5)


@pytest.mark.parametrize(
    "given", ["[1]", "{", '{"a": {"priority": 10}}', '{"a": {"size": 1}}', '{"A b": {}}']
)
def test_invalid_classes_name_the_setting(folder: Path, given: str) -> None:
    with pytest.raises(InvalidSettingsError, match="slo-classes"):
        settings_of(folder, slo_classes=given)


async def test_class_of_a_request_decides_its_deadline_and_that_it_only_fills(folder: Path) -> None:
    classes = {"slow": {"batch": True, "first_token_deadline_s": 1e-6}}
    async with composed(settings_of(folder, slo_classes=classes)) as world:
        late = await world.post(PROMPT, {"x-slo-class": "slow"}, max_tokens=2)
        assert late.status_code == 400
        assert "a deadline of the protocol or the SLO class" in late.json()["error"]["message"]
        await world.complete(PROMPT, headers={"x-slo-class": "batch"}, max_tokens=2)
        unknown = await world.post(PROMPT, {"x-slo-class": "gold"})
    assert unknown.status_code == 400
    assert "batch, interactive, slow" in unknown.json()["error"]["message"]


async def test_log_says_how_long_loading_took_while_the_loop_was_busy(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="headroom_server")
    settings = settings_of(folder, engine="generation-emulated", emulated_load_s=0.1)
    generator = build_generator(settings, build_engine(settings))
    generator.start()
    time.sleep(0.3)  # noqa: ASYNC251 - as the import of the web framework does
    await generator.started()
    generator.stop()
    assert await asyncio.to_thread(generator.join, 5.0)
    line = next(one for one in caplog.messages if "warm after" in one)
    assert 0.1 <= float(line.split()[3]) < 0.25


def test_largest_batch_that_is_set_bounds_the_sequences_of_an_iteration(folder: Path) -> None:
    assert limits(folder).max_sequences == 64
    assert limits(folder, max_batch_size=4).max_sequences == 4
    assert limits(folder, max_batch_size=16, max_sequences=8).max_sequences == 8


def test_vllm_takes_its_number_of_sequences_by_its_own_argument(folder: Path) -> None:
    settings = settings_of(folder, engine="vllm", max_batch_size=4)
    with pytest.raises(LoadError, match=r"HEADROOM_MAX_BATCH_SIZE must be unset.*--max-num-seqs"):
        check_applicable(settings)


async def test_embeddings_are_asked_of_their_server_once_with_a_feature_cache(folder: Path) -> None:
    asked: list[object] = []

    async def predict(request: web.Request) -> web.Response:
        asked.append(await request.json())
        close = {"connection": "close"}
        return web.json_response({"predictions": [[1.0, 0.5]]}, headers=close)

    async with on_loopback(predict) as url:
        caches = build_caches(
            settings_of(
                folder,
                cache_bytes=1 << 20,
                feature_cache_bytes=1 << 20,
                semantic_cache_url=f"{url}/v1/models/e:predict",
                semantic_cache_tokenizer=str(folder),
            )
        )
        assert caches.answers is not None
        assert caches.features is not None
        for key in (b"one", b"other"):  # their prompts differ in what is before the last text
            await caches.answers.look(Question(key, key, "What is a queue?", "a"))

    assert len(asked) == 1
    assert caches.features.counts().by_source[FeatureKind.EMBEDDING, Source.MEMORY] == 1
    assert caches.answers.counts().embedding_failures == 0


def test_no_features_are_kept_by_default(folder: Path) -> None:
    assert build_caches(settings_of(folder)) == (None, None, None)
