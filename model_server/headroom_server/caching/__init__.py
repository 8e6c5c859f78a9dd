"""Answers that are kept: equal inputs to one model cost one execution while an answer is fresh.

keys, values, lru, breaker, counts   pure
flights                              who waits for whose execution
store                                the port of a second level, and what bounds its harm
redis_store                          Redis behind that port; alone imports its client
cache                                one model's cache, put together
"""
