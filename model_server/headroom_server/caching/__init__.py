"""The response cache: equal inputs to one model cost one execution while an answer is fresh.

keys, values, lru, breaker   pure
flights                      single flight: equal concurrent requests share one execution
store                        interface of a second level, and limits on its effect
redis_store                  Redis as second level; the only module that imports its client
cache                        one model's cache
"""
