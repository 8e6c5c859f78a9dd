"""Cost of an engine's iteration, learned from its counters. Pure.

- intervals between scrapes: intervals, mean_iterations, teaching
- from intervals to a cost: ledger, sums, least_squares, estimate, doubt, steadiness
- what is known of engines: ratios, experts
"""
