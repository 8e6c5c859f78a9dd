"""The accepted requests of a scheduler and where they are: waiting, prefill, decode. Pure."""

from __future__ import annotations

from bisect import insort

from headroom_server.generation.scheduling.costs.cost_sums import CostSums
from headroom_server.generation.scheduling.costs.iteration_cost import IterationCost
from headroom_server.generation.scheduling.costs.output_lengths import OutputLengths
from headroom_server.generation.scheduling.costs.usual_prompts import UsualPrompts
from headroom_server.generation.scheduling.memory.kv_memory import KeyValueMemory
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.sequences import LiveSequence, Phase
from headroom_server.generation.scheduling.waiting.service_order import order, urgency
from headroom_server.generation.scheduling.waiting.tenant_charges import TenantCharges
from headroom_server.generation.scheduling.waiting.waiting_line import WaitingLine
from headroom_server.generation.values import GenerationLimits
from headroom_server.scheduling.tenant_shares import TenantShares


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
        self.charges = TenantCharges(self.shares, self.lines)
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
        """Decoding sequences that have long prompts."""
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
    def has_prompts(self) -> bool:
        """Whether any prompt waits or is computed."""
        lines = self.interactive, self.long, self.batch
        return bool(self.prefilling) or any(line.count for line in lines)

    def forget_saved_time(self) -> None:
        """Forget time that was saved for prompts: none is left."""
        self.saved_s[False] = 0.0
        if self.long_apart:
            self.saved_s[True] = 0.0

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
        self.line_of(sequence).remove(sequence)
        self.memory.start(sequence, prefix)
        sequence.phase = Phase.PREFILL
        if not sequence.charged:
            self.charges.start(sequence, self.expected_left(sequence))
            sequence.cached_tokens = sequence.computed
        self.count("cached_prompt_tokens", sequence.computed)
        insort(self.prefilling, sequence, key=order)

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

    # ---- what is expected

    def expected_left(self, sequence: LiveSequence) -> float:
        """Return how many tokens the sequence is expected to generate from now on."""
        generated = sequence.generated
        return min(float(sequence.left), self.lengths.expected(generated) - generated)
