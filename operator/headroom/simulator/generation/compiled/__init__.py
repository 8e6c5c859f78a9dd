"""Replicas that generate tokens as compiled code over arrays that change in place.

- an iteration: iterations, sequences, memory, iteration_cost; iteration after iteration: kernel
- the arrays: layout, state, histogram_bounds
"""
