"""PURE. The accepted requests of a scheduler and where they are: waiting, prefill, decode."""

from __future__ import annotations

from bisect import insort

from headroom_server.generation.scheduling.iteration_cost import CostSums, IterationCost
from headroom_server.generation.scheduling.kv_memory import KeyValueMemory, peak_tokens
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.output_lengths import OutputLengths
from headroom_server.generation.scheduling.sequences import LiveSequence, Phase
from headroom_server.generation.scheduling.usual_prompts import UsualPrompts
from headroom_server.generation.scheduling.waiting_line import WaitingLine
from headroom_server.generation.scheduling.work import work_tokens
from headroom_server.generation.values import GenerationLimits
from headroom_server.scheduling.tenant_shares import TenantShares

MEMORY_SHARE = 0.9
"""Share of the blocks that the expected peak may use: beyond it, preemptions multiply."""

PACE_USED = 0.75
"""Share of a promised time per token that decodes alone may use: the rest is for prompts."""


class SchedulerState:
    """Everything that the scheduler's modules share."""

    def __init__(
        self, limits: GenerationLimits, options: SchedulingOptions, *, interrupts: bool = True
    ) -> None:
        self.limits = limits
        self.options = options
        self.interrupts = interrupts
        """Whether what runs can be interrupted for a tenant that received less."""
        self.seats = min(limits.max_sequences, limits.max_iteration_tokens)
        self.memory = KeyValueMemory(
            limits.blocks, limits.block_tokens, caching=options.prefix_cache
        )
        self.shares = TenantShares()
        self.interactive = WaitingLine(self.shares)
        self.long = WaitingLine(self.shares)
        """Interactive requests with long prompts."""
        self.batch = WaitingLine(self.shares)
        self.lines = (self.interactive, self.long, self.batch)
        self.prompts = UsualPrompts()
        self.cost = IterationCost()
        self.lengths = OutputLengths()
        self.live: dict[int, LiveSequence] = {}
        """All accepted requests that have not ended."""
        self.prefilling: list[LiveSequence] = []
        """In order of service."""
        self.decoding: dict[int, LiveSequence] = {}
        self.context_tokens = 0
        """Tokens of the decoding sequences."""
        self.long_decoding: dict[int, LiveSequence] = {}
        """Those of the decoding sequences that have long prompts."""
        self.sums = CostSums()
        """All iterations, unweighted."""
        self.totals: dict[str, int] = {}
        self.saved_s = {False: 0.0, True: 0.0}
        """Time of usual and of long prompts that was too little for a chunk, for later ones."""
        self.draft_step_s = 0.0
        """Learned time in which a draft model proposes one token for every sequence."""

    def count(self, name: str, by: int = 1) -> None:
        """Add to a total of `EngineStatistics`."""
        self.totals[name] = self.totals.get(name, 0) + by

    def line_of(self, sequence: LiveSequence) -> WaitingLine:
        """Return the line in which the sequence waits."""
        if sequence.request.batch_class:
            return self.batch
        return self.long if sequence.long else self.interactive

    @property
    def long_apart(self) -> bool:
        """Whether there are usual requests, which the long ones must not slow down.

        With a promised time per token that bounds all prompts together.
        """
        if self.options.time_per_token_s is not None or not self.cost.known:
            return False
        return (
            len(self.decoding) > len(self.long_decoding)
            or bool(self.interactive.count)
            or any(not one.long for one in self.prefilling)
        )

    @property
    def prompts_pending(self) -> bool:
        """Whether prompts wait or are computed that others must not slow down."""
        if self.interactive.count or self.long.count:
            return True
        return any(not one.request.batch_class for one in self.prefilling)

    @property
    def long_contexts_s(self) -> float:
        """Time that the answers to long prompts add to an iteration."""
        long, cost = self.long_decoding, self.cost
        if not long:
            return 0.0
        contexts = sum(len(one.tokens) for one in long.values())
        return cost.per_decode_s * len(long) + cost.per_context_s * contexts

    @property
    def running(self) -> int:
        """Sequences that hold blocks."""
        return len(self.prefilling) + len(self.decoding)

    @property
    def running_tokens(self) -> int:
        """Tokens of the sequences that hold blocks."""
        return self.context_tokens + sum(len(one.tokens) for one in self.prefilling)

    def sooner(self, one: LiveSequence, other: LiveSequence) -> LiveSequence:
        """Return which one is served first, as if both waited in one line; one may be computed."""
        received, others = self.shares.of(one.request.tenant), self.shares.of(other.request.tenant)
        less, more = (one, other) if received < others else (other, one)
        if self.interrupts and received != others and urgency(less) <= urgency(more):
            return less
        return min(one, other, key=order)

    # ---- transitions

    def wait(self, sequence: LiveSequence) -> None:
        """Put an accepted sequence in its line."""
        sequence.phase = Phase.WAITING
        self.line_of(sequence).push(sequence)

    def start(self, sequence: LiveSequence, prefix: list[int]) -> None:
        """Begin the prefill of a waiting sequence; its blocks are available."""
        line = self.line_of(sequence)
        line.remove(sequence)
        self.memory.start(sequence, prefix)
        sequence.phase = Phase.PREFILL
        if not sequence.charged:
            tenant = sequence.request.tenant
            sequence.charged = work_tokens(sequence.remaining, self.expected_left(sequence))
            self.charge(tenant, sequence.charged)
            sequence.cached_tokens = sequence.computed
        self.count("cached_prompt_tokens", sequence.computed)
        insort(self.prefilling, sequence, key=order)

    def charge(self, tenant: str, work: float) -> None:
        """Charge a request that starts."""
        waiting = {name for one in self.lines for name in one.by_tenant} | {tenant}
        self.shares.serve(tenant, work, len(waiting))
        self.shares.forget(waiting)
        self.account_changed(tenant)

    def charge_progress(self, sequence: LiveSequence) -> None:
        """Charge what an answer has taken beyond what was expected when it started.

        Otherwise a tenant whose long answers have all seats would count as served least until they
        end, and another one would wait behind it for a seat that it does not give.
        """
        request = sequence.request
        prompt_tokens = len(request.prompt) - sequence.cached_tokens
        more = work_tokens(prompt_tokens, sequence.generated) - sequence.charged
        if sequence.charged and more > 0.0:
            self.shares.correct(request.tenant, more)
            self.account_changed(request.tenant)
            sequence.charged += more

    def charge_end(self, sequence: LiveSequence) -> None:
        """Correct the charge of a request that has ended to what it has taken."""
        if sequence.charged:
            tenant, prompt = sequence.request.tenant, len(sequence.request.prompt)
            done = work_tokens(prompt - sequence.cached_tokens, sequence.generated)
            self.shares.correct(tenant, done - sequence.charged)
            self.account_changed(tenant)

    def begin_decode(self, sequence: LiveSequence) -> None:
        """Move a sequence whose prompt is computed; its first token is already appended."""
        self.prefilling.remove(sequence)
        sequence.phase = Phase.DECODE
        self.decoding[sequence.key] = sequence
        if sequence.long:
            self.long_decoding[sequence.key] = sequence
        self.context_tokens += len(sequence.tokens)

    def withdraw(self, sequence: LiveSequence) -> None:
        """Take a sequence out of its phase. It keeps its blocks."""
        if sequence.phase is Phase.WAITING:
            self.line_of(sequence).remove(sequence)
        elif sequence.phase is Phase.PREFILL:
            self.prefilling.remove(sequence)
        elif sequence.phase is Phase.DECODE:
            del self.decoding[sequence.key]
            self.long_decoding.pop(sequence.key, None)
            self.context_tokens -= len(sequence.tokens)
            sequence.computed = len(sequence.tokens) - 1

    def preempt(self, sequence: LiveSequence) -> None:
        """Take a sequence's memory; it is computed again later."""
        self.withdraw(sequence)
        self.memory.release(sequence)
        sequence.preemptions += 1
        self.count("preemptions")
        self.wait(sequence)

    def account_changed(self, tenant: str) -> None:
        """Follow a change of a tenant's account."""
        for line in self.lines:
            line.account_changed(tenant)

    # ---- what is expected

    def expected_left(self, sequence: LiveSequence) -> float:
        """Return how many tokens the sequence is expected to generate from now on."""
        generated = sequence.generated
        return min(float(sequence.left), self.lengths.expected(generated) - generated)

    def memory_admits(self, sequence: LiveSequence, new_blocks: int) -> bool:
        """Return whether the expected peak leaves room, if the sequence starts now."""
        pool, size = self.memory.pool, self.memory.block_tokens
        if new_blocks > pool.available:
            return False
        if not self.running:
            return True
        to_come = (self.running + 1) * (self.lengths.expected() / size + 1.0)
        most = MEMORY_SHARE * pool.total
        if pool.used + new_blocks + to_come <= most:
            return True
        running = (*self.prefilling, *self.decoding.values())
        present = sum(len(one.blocks) for one in running)
        pairs = [(size * len(one.blocks), self.expected_left(one)) for one in running]
        pairs.append((size * new_blocks, self.expected_left(sequence)))
        shared = present - pool.used
        return peak_tokens(pairs) / size - shared <= most


def urgency(sequence: LiveSequence) -> tuple[bool, int]:
    """Return the rank of a request without its age: interactive before batch, then by priority."""
    return sequence.request.batch_class, sequence.request.priority


def order(sequence: LiveSequence) -> tuple[bool, float, int]:
    """Return the rank of service: interactive before batch, then by place."""
    request = sequence.request
    return request.batch_class, sequence.place_s, request.key
