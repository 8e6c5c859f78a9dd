"""Plans the next iteration: decodes, then prompts, with its features for the cost. Pure."""

from __future__ import annotations

from headroom_server.generation.scheduling.costs.iteration_cost import Features, features_of
from headroom_server.generation.scheduling.iterations.decode_plan import plan_decodes
from headroom_server.generation.scheduling.iterations.prompt_fill import PromptFill
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.values import Chunk, Iteration


def plan_iteration(
    state: SchedulerState, now_s: float, due_within_s: float | None
) -> tuple[Iteration, Features] | None:
    """Return the next iteration and its features; None: nothing can be computed now.

    First tokens are usually due within `due_within_s` of their arrival; None: not at any time.
    """
    pause = state.prompts_pending
    chunks = plan_decodes(state, pause=pause)
    if not state.has_prompts:  # most iterations
        state.forget_saved_time()
        return _plan(state, chunks, Features(0, len(chunks), state.context_tokens))
    fill = PromptFill(state, chunks, now_s)
    fill.fill(due_within_s)
    if not chunks and pause:  # no prompt could be computed: batch-class decodes may go on
        chunks = plan_decodes(state)
    prompts = fill.budget
    decodes, contexts = len(chunks) - prompts.chunks, state.context_tokens
    features = Features(prompts.prompt_tokens, decodes, contexts, prompts.products)
    return _plan(state, chunks, features)


def _plan(
    state: SchedulerState, chunks: list[Chunk], features: Features
) -> tuple[Iteration, Features] | None:
    """Return an iteration with its features; `features` hold if all decode, without drafts."""
    if not chunks:
        return None
    iteration = Iteration(tuple(chunks))
    if state.options.max_drafts or features.decodes < len(state.decoding):
        features = features_of(iteration)
    return iteration, features
