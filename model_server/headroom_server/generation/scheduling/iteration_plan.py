"""PURE. What the next iteration computes: decodes, then prompts, and its features for the cost."""

from __future__ import annotations

from headroom_server.generation.scheduling.decode_plan import plan_decodes
from headroom_server.generation.scheduling.iteration_cost import Features, features_of
from headroom_server.generation.scheduling.prompt_fill import PromptFill
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.values import Iteration


def plan_iteration(
    state: SchedulerState, now_s: float, due_within_s: float | None
) -> tuple[Iteration, Features] | None:
    """Return the next iteration and its features; None: nothing can be computed now.

    First tokens are usually due within `due_within_s` of their arrival; None: not at any time.
    """
    pause = state.prompts_pending
    chunks = plan_decodes(state, pause=pause)
    fill = PromptFill(state, chunks, now_s)
    fill.fill(due_within_s)
    if not chunks and pause:  # no prompt could be computed: batch-class decodes may go on
        chunks = plan_decodes(state)
    if not chunks:
        return None
    prompts = fill.budget
    decodes = len(chunks) - prompts.chunks
    iteration = Iteration(tuple(chunks))
    if state.options.max_drafts or decodes < len(state.decoding):
        return iteration, features_of(iteration)
    features = Features(prompts.prompt_tokens, decodes, state.context_tokens, prompts.products)
    return iteration, features
