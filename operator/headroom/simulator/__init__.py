"""The production decision and its peers on a virtual clock, over a request-level plant.

- runs: run, run_samples, campaign, studies, event_queue, autoscaler, observing, metrics
- plant: plant, plant_state, kernel, fleet, gpu_pool, capacity
- clients: closed_loop, client_kernel, client_state
- scenarios and results: scenario, outcome, scores
- compiled code: compiling, heap, rng
"""
