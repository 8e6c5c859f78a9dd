"""Serves models: each has its own queue, intake and metrics, and loads while others serve.

- a model that batches: runner, devices (device, devices_owner, common_warm_up), and its queue:
  model_queue, intake, in_flight, shared_queue, pending, featuring
- a model that generates: generator, generation_requests, generation_run, choice_run
- the life of both: model_life
- all models of the process: registry, catalogue, model_changes, served_model
- from a repository: control, store
- what is kept between requests: caches, embedding
"""
