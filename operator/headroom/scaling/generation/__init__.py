"""Sizes services that generate tokens: by engine time, memory, seats and the tails of promises.

- counters: what servers report, as tables
- replica_model: what one replica does at a rate
- promises: what was measured of the promises on tokens
- learning: cost, lengths and tails, from tick to tick
- fleet: how many replicas keep the promises
- pools: what a prefill and a decode pool tell each other
"""
