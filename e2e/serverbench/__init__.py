"""The model server compared with other servers, on one machine, under the same load.

All serve the same model: it sleeps 6 ms + 0.5 ms for each item of a batch of at most 8, which
stands for a GPU without using a processor. Peers are installed from their packages, each in a
virtual environment of its own, as `requirements/` pins them, and run at their defaults with their
documented settings for batches; the yardstick is a bare ASGI application with the same batcher.

The load is open: Poisson arrivals by a seed, latency from the instant a request was due, and one
that was refused, lost or wrong counts as never answered. The generator is one thread on epoll and a
timer (0.06 ms of CPU per request); its cost, its lateness and what the rest of the machine did are
part of the report. Those that are compared closely are up together and take turns within a round;
figures are medians over rounds, ratios are taken round by round.

The highest rate is held against a simulation of the same arrivals without any overhead.
"""
