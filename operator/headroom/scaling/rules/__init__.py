"""The rules: how many replicas each asks for, and all of them combined.

- one rule knows no other: rate_rules, queue_rules, promise_rules
- full_batches bounds those of the rate
- all of a tick: rule_inputs in, rule_results out
"""
