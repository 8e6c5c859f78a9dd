"""Admission, order of service, batch composition and batch cost. Pure.

- the interface, of the server and of simulations: scheduler
- whether a request may wait: admission, deadline_admission, deadline_margin, finish_prediction
- who comes next: priority_queues, tenant_queue, tenant_shares, suspects
- which cached entry goes: eviction_order
- the batch: batching, batch_selection, deadlines, entries
- what it costs: cost_model, batch_cost_fit, deferred_updates
- when devices are free: device_pool, device_time
"""
