"""Serves models: each has its own queue, intake and metrics, and loads while others serve.

A model that batches: `runner` on its `devices` (each a `device`), above `model_queue` (`intake`,
`in_flight`, `shared_queue`, `pending`, `featuring`). A model that generates: `generator` above
`generation_requests` (`generation_run`). Both have a `model_life`. All models of the process:
`registry` above `catalogue` and `model_changes` (`served_model`); `control` and `store` find them
in a repository; `caches` and `embedding` build what is kept.
"""
