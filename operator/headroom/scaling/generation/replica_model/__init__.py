"""The model of one replica: cost of a request, binding limit of the rate, tails of latency.

- a request: work, shared_memory
- what binds: rates, seats, overload, capacity
- sequences at a time: occupancy, prompt_bursts
- tails: first_token, output_token
- all of it at a rate: replica
"""
