"""Answers that are kept: equal inputs to one model cost one execution while an answer is fresh.

keys, values, lru, breaker   pure
flights                      who waits for whose execution
store                        the port of a second level, and what bounds its harm
redis_store                  Redis behind that port; the only module that imports it
cache                        one model's cache, put together
"""
