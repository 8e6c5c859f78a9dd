"""Decides every iteration: which sequences decode, which prompts advance, who waits. Pure.

- scheduler: its interface; state, counts, sequences, options: what it remembers
- admission: which requests are accepted
- waiting: who comes next
- iterations: what an iteration computes, and what follows from its result
- memory: blocks of keys and values
- costs: what iterations take
- endings: releases what a request held; lookup: drafts from its own tokens
"""
