"""The metrics of a generating model as Prometheus text. Names and labels are an API. Pure.

Requests have the same series as those of other models; tokens and iterations have their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headroom_server.caching.generation_cache import GeneratedSource, GenerationCacheCounts
from headroom_server.generation.ports import EngineStatistics
from headroom_server.lifecycle import STARTUP
from headroom_server.telemetry import cache_metrics, exposition
from headroom_server.telemetry.generation_snapshot import GenerationSnapshot

COST_FEATURES = ("1", "P", "D", "KV", "X")
"""Features of an iteration: constant, tokens of prompts, decoding sequences, tokens in their
contexts, and tokens of prompts times the context before them."""


def render(snapshot: GenerationSnapshot) -> bytes:
    """Render the exposition text, format 0.0.4."""
    return "".join(_lines(snapshot)).encode()


def _lines(snapshot: GenerationSnapshot) -> Iterator[str]:
    ledger, model = snapshot.ledger, f'model="{snapshot.model}"'
    yield from exposition.requests(ledger, model, snapshot.classes.requests(model))
    yield from _in_flight(snapshot, model)
    for name, kind, meaning, value in _series(snapshot):
        yield exposition.head(name, kind, meaning)
        yield exposition.sample(name, model, value)
    yield from _tokens(snapshot, model)
    yield from _cost(snapshot.counts, model)
    if snapshot.cache is not None:
        yield from _cache(snapshot.cache, model)
    if (found := snapshot.features) is not None:
        by_source = [(kind, source, count) for (kind, source), count in found.by_source.items()]
        yield from cache_metrics.features(by_source, found.levels, model)
    if (shared := snapshot.cache or snapshot.features) is not None:
        yield from cache_metrics.second_level(shared.levels, model)
    yield exposition.head("startup_phase_seconds", "gauge", "Seconds per startup phase.")
    for phase in STARTUP:
        if phase in snapshot.phase_s:
            labels = f'{model},phase="{phase}"'
            yield exposition.sample("startup_phase_seconds", labels, snapshot.phase_s[phase])
    yield from _histograms(snapshot, model)
    yield exposition.head("engine_info", "gauge", "Engine and device that generate.")
    emulated = "true" if snapshot.emulated else "false"
    labels = f'{model},engine="{snapshot.engine}",device="{snapshot.device}",emulated="{emulated}"'
    yield exposition.sample("engine_info", labels, 1)


def _in_flight(snapshot: GenerationSnapshot, model: str) -> Iterator[str]:
    counts, classes = snapshot.counts, snapshot.classes
    found = classes.gauges(snapshot.in_flight, counts.waiting_requests, counts.waiting_batch_class)
    meaning = "Accepted requests that wait for their prompt to be computed."
    yield exposition.head("requests_waiting", "gauge", meaning)
    for one in found:
        yield exposition.sample("requests_waiting", classes.labels(model, one.name), one.waiting)
    meaning = "Requests whose prompt or answer is computed."
    yield exposition.head("requests_running", "gauge", meaning)
    for one in found:
        yield exposition.sample("requests_running", classes.labels(model, one.name), one.running)


def _histograms(snapshot: GenerationSnapshot, model: str) -> Iterator[str]:
    generation = snapshot.generation
    for name, meaning, histogram, select in (
        ("request_duration_seconds", "Time from request to response.", snapshot.ledger.request_s,
         lambda one: one.requests.request_s),
        ("time_to_first_token_seconds", "Time from request to first token.",
         generation.first_token_s, lambda one: one.tokens.first_token_s),
        ("inter_token_latency_seconds", "Time between two tokens of an answer.",
         generation.between_tokens_s, None),
        ("time_per_output_token_seconds", "Mean time between the tokens of an answer.",
         generation.per_token_s, lambda one: one.tokens.per_token_s),
        ("prompt_tokens", "Tokens per prompt.", generation.prompt_tokens,
         lambda one: one.tokens.prompt_tokens),
        ("answer_tokens", "Tokens per answer.", generation.answer_tokens,
         lambda one: one.tokens.answer_tokens),
    ):  # fmt: skip
        yield exposition.head(name, "histogram", meaning)
        if select is None:
            yield from exposition.buckets(name, model, histogram)
            continue
        for named, counted in snapshot.classes.histograms(histogram, select):
            yield from exposition.buckets(name, snapshot.classes.labels(model, named), counted)


def _series(snapshot: GenerationSnapshot) -> Sequence[tuple[str, str, str, float]]:
    counts = snapshot.counts
    gauges = [
        ("waiting_tokens", "Tokens of prompts that are accepted and not computed.",
         counts.waiting_tokens),
        ("context_tokens", "Tokens in the contexts of running requests.", counts.context_tokens),
        ("ready", "1 if warm and not draining.", int(snapshot.ready)),
        ("draining", "1 after SIGTERM.", int(snapshot.draining)),
    ]  # fmt: skip
    if (limits := snapshot.limits) is not None:
        gauges += [
            ("max_batch_size", "Maximum sequences per iteration.", limits.max_sequences),
            ("max_iteration_tokens", "Maximum tokens computed per iteration.",
             limits.max_iteration_tokens),
            ("kv_block_tokens", "Tokens of a block of keys and values.", limits.block_tokens),
        ]  # fmt: skip
    totals = (
        ("device_busy_seconds_total", "Seconds in which iterations were executed.", counts.busy_s),
        ("iterations_total", "Iterations executed.", counts.iterations),
        ("iterations_failed_total", "Iterations that failed.", counts.failed_iterations),
        ("preemptions_total", "Sequences whose memory was taken, to be computed again.",
         counts.preemptions),
        ("slow_readers_total", "Streams ended because their clients did not read.",
         snapshot.generation.slow_readers),
        ("scrapes_total", "Scrapes served so far.", snapshot.page),
    )  # fmt: skip
    return [
        *((name, "counter", meaning, value) for name, meaning, value in totals),
        *((name, "gauge", meaning, value) for name, meaning, value in gauges),
    ]


def _tokens(snapshot: GenerationSnapshot, model: str) -> Iterator[str]:
    counts = snapshot.counts
    yield from exposition.counters(
        "tokens_total",
        "Tokens, by kind: computed and cached ones of prompts, generated ones, accepted and "
        "rejected drafts.",
        model,
        "kind",
        {
            "computed": counts.computed_prompt_tokens,
            "cached": counts.cached_prompt_tokens,
            "generated": counts.generated_tokens,
            "accepted": counts.accepted_tokens,
            "rejected": counts.rejected_tokens,
        },
    )
    name = "answered_prompt_tokens_total"
    meaning = "Tokens of prompts whose first token was generated, computed or cached."
    yield exposition.head(name, "counter", meaning)
    for named, computed, cached in snapshot.classes.prompt_tokens(snapshot.generation):
        labels = snapshot.classes.labels(model, named)
        yield exposition.sample(name, f'{labels},kind="computed"', computed)
        yield exposition.sample(name, f'{labels},kind="cached"', cached)
    yield from exposition.counters(
        "choices_total",
        "Ended choices, by reason.",
        model,
        "reason",
        snapshot.generation.finished,
    )
    yield exposition.head("kv_blocks", "gauge", "Blocks of keys and values, by state.")
    for state, count in (
        ("used", counts.used_blocks),
        ("cached", counts.cached_blocks),
        ("free", counts.free_blocks),
    ):
        yield exposition.sample("kv_blocks", f'{model},state="{state}"', count)


def _cache(counts: GenerationCacheCounts, model: str) -> Iterator[str]:
    engine = GeneratedSource.ENGINE
    hits = {source: n for source, n in counts.by_source.items() if source is not engine}
    yield from cache_metrics.answers(hits, counts.by_source[engine], counts.levels, model)
    if counts.similar_entries is not None:
        similar, failures = counts.similar_entries, counts.embedding_failures
        meaning = "Answers that are found by similarity."
        yield from exposition.single("cache_similar_entries", "gauge", meaning, model, similar)
        meaning, name = "Embeddings of questions that failed or were late.", "cache_embedding"
        yield from exposition.single(f"{name}_failures_total", "counter", meaning, model, failures)


def _cost(counts: EngineStatistics, model: str) -> Iterator[str]:
    """The sums from which the time of an iteration is fitted exactly, by least squares."""
    if not counts.cost_xx:
        return
    size = len(COST_FEATURES)
    pairs = [(row, column) for row in range(size) for column in range(row, size)]
    name = "iteration_cost_xx_total"
    yield exposition.head(name, "counter", "Sum over iterations of the product of two features.")
    for (row, column), value in zip(pairs, counts.cost_xx, strict=True):
        labels = f'{model},row="{COST_FEATURES[row]}",column="{COST_FEATURES[column]}"'
        yield exposition.sample(name, labels, value)
    name = "iteration_cost_xy_total"
    yield exposition.head(name, "counter", "Sum over iterations of a feature times the seconds.")
    for feature, value in zip(COST_FEATURES, counts.cost_xy, strict=True):
        yield exposition.sample(name, f'{model},row="{feature}"', value)
