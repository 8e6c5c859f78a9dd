"""The production decision and its peers on a virtual clock, over a request-level plant.

- runs: run, run_samples, campaign, event_queue, autoscaler, observing, metrics
- plant: plant, cold_start, service_plant, fleet, replica, gpu_pool, capacity; compiled/
- clients: clients, closed_loop
- scenarios and results: scenario, validation, fault_injection, ground_truth, outcome, scores
"""
