"""Serves models: each has its own queue, intake and metrics, and loads while others serve.

- a model that batches: the package batching; one that generates: generating; the life of both:
  model_life
- all models of the process: registry, catalogue, model_changes, served_model
- from a repository: control, store
- what is kept between requests: caches, embedding
"""
