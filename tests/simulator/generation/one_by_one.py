"""A plain copy of vLLM v1's policy, one iteration at a time: what the compiled plant must equal."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from headroom.simulator.generation.plant import Engine
from headroom.simulator.generation.requests import PREFIX_TOKENS, Requests


@dataclass
class Sequence:
    key: int
    prompt: int
    output: int
    units: list[int]
    generated: int = 0
    computed: int = 0
    shared: list[int] = field(default_factory=list)
    first_s: float | None = None
    end_s: float | None = None
    preemptions: int = 0
    decoding: bool = False
    """Whether its prompt, with what it generated before a preemption, is computed."""

    @property
    def tokens(self) -> int:
        return self.prompt + self.generated


class Replica:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.blocks = engine.kv_tokens // engine.block_tokens
        self.unit = PREFIX_TOKENS // engine.block_tokens
        self.running: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.uses: dict[int, int] = {}
        self.idle: OrderedDict[int, None] = OrderedDict()
        self.held = 0

    def blocks_of(self, tokens: int) -> int:
        return -(-tokens // self.engine.block_tokens)

    @property
    def used(self) -> int:
        return self.held + self.unit * sum(count > 0 for count in self.uses.values())

    def fits(self, more: int) -> bool:
        return self.used + more <= self.blocks

    def evict(self) -> None:
        while self.used + self.unit * len(self.idle) > self.blocks:
            unit, _ = self.idle.popitem(last=False)
            del self.uses[unit]

    def private(self, one: Sequence, tokens: int) -> int:
        return self.blocks_of(tokens) - self.unit * len(one.shared)

    def free(self, one: Sequence) -> None:
        self.held -= self.private(one, one.computed)
        for unit in reversed(one.shared):
            self.uses[unit] -= 1
            if not self.uses[unit]:
                self.idle[unit] = None
        one.shared = []

    def preempt(self) -> Sequence:
        victim = self.running.pop()
        self.free(victim)
        victim.computed, victim.decoding = 0, False
        victim.preemptions += 1
        self.waiting.insert(0, victim)
        return victim

    def share(self, one: Sequence, units: list[int]) -> None:
        for unit in units:
            self.idle.pop(unit, None)
            self.uses[unit] = self.uses.get(unit, 0) + 1
            one.shared.append(unit)

    def schedule(self) -> list[tuple[Sequence, int]]:
        chosen: list[tuple[Sequence, int]] = []
        budget = self.engine.iteration_tokens
        preempted = False
        # A block that every decode needs is found before prompts get any.
        decodes = [one for one in self.running if one.decoding]
        while decodes and not self.fits(self.grown(decodes)):
            victim = self.preempt()
            preempted = True
            decodes = [one for one in decodes if one is not victim]
        for one in list(self.running):
            if one not in self.running:
                continue
            count = min(budget, one.tokens - one.computed)
            more = self.private(one, one.computed + count) - self.private(one, one.computed)
            if not self.fits(more):
                assert self.running[-1] is one
                self.preempt()
                preempted = True
                continue
            self.held += more
            budget -= count
            chosen.append((one, count))
        self.evict()
        if not preempted or not chosen:
            self.admit(chosen, budget)
        self.evict()
        return chosen

    def grown(self, decodes: list[Sequence]) -> int:
        size = self.engine.block_tokens
        return sum(one.computed % size == 0 for one in decodes)

    def admit(self, chosen: list[tuple[Sequence, int]], budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self.engine.sequences:
            one = self.waiting[0]
            most = (one.prompt - 1) // PREFIX_TOKENS
            hits: list[int] = []
            for unit in one.units[:most]:
                if unit not in self.uses:
                    break
                hits.append(unit)
            found = PREFIX_TOKENS * len(hits)
            count = min(budget, one.tokens - found)
            own = self.blocks_of(found + count) - self.unit * len(hits)
            revived = self.unit * sum(self.uses[unit] == 0 for unit in hits)
            if not self.fits(self.blocks_of(one.tokens) - self.unit * len(hits) + revived):
                return
            self.waiting.pop(0)
            self.share(one, hits)
            self.held += own
            self.evict()
            one.computed = found
            self.running.append(one)
            chosen.append((one, count))
            budget -= count

    def step(self, now_s: float) -> float | None:
        """Perform one iteration and return when it ends; None if there is nothing to do."""
        chosen = self.schedule()
        if not chosen:
            return None
        prompts = products = decodes = contexts = 0.0
        for one, count in chosen:
            if one.decoding:
                decodes += 1
                contexts += one.tokens
            else:
                prompts += count
                products += count * (one.computed + count / 2)
        end_s = now_s + self.engine.cost.iteration_s(prompts, decodes, contexts, products)
        for one, count in chosen:
            one.computed += count
            if one.computed < one.tokens:
                continue
            if not one.decoding:
                self.publish(one)
                one.decoding = True
            one.generated += 1
            if one.first_s is None:
                one.first_s = end_s
            if one.generated == one.output:
                one.end_s = end_s
                self.running.remove(one)
                self.free(one)
        return end_s

    def publish(self, one: Sequence) -> None:
        last = one.prompt // PREFIX_TOKENS
        for unit in one.units[len(one.shared) : last]:
            self.idle.pop(unit, None)
            self.uses[unit] = self.uses.get(unit, 0) + 1
            one.shared.append(unit)
            self.held -= self.unit


def played(engine: Engine, requests: Requests) -> list[Sequence]:
    """Run all requests through one replica and return what happened to them."""
    starts = requests.starts
    records = [
        Sequence(
            key,
            int(requests.prompt_tokens[key]),
            int(requests.output_tokens[key]),
            requests.block_ids[starts[key] : starts[key + 1]].tolist(),
        )
        for key in range(len(requests))
    ]
    replica, now_s, index = Replica(engine), 0.0, 0
    while True:
        while index < len(records) and requests.arrival_s[index] <= now_s:
            replica.waiting.append(records[index])
            index += 1
        end_s = replica.step(now_s)
        if end_s is not None:
            now_s = end_s
        elif index < len(records):
            now_s = float(requests.arrival_s[index])
        else:
            return records
