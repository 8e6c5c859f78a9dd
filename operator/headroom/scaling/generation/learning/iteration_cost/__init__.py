"""What an iteration of an engine costs, learned from its counters. Pure.

- intervals between scrapes: intervals, mean_iterations, teaching
- from intervals to a cost: ledger, sums, least_squares, estimate, steadiness
- what is known of engines: ratios, experts
"""
