"""The caches: equal inputs to one model cost one execution while an answer is fresh.

keys, values, lru, breaker   pure, as are seal and feature_values
flights                      single flight: equal concurrent requests share one execution
store                        interface of a second level, and limits on its effect
redis_store                  Redis as second level; the only module that imports its client
cache                        one model's cache
features                     embeddings and tokens of long prompts, on the same levels
"""
