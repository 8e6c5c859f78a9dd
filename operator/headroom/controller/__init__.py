"""One service, one tick: `gather`, `decide`, `act`, `report`.

Next to them: when ticks are due (`scheduling`), the cached InferenceServices (`services`), leader
election (`leadership`), gateways (`routing`), warm-up requests (`warmup`), accelerators that
services share (`sharing`).
"""
