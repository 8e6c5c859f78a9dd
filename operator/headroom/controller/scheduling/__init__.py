"""Schedule of evaluations: the tick period and the queue of ticks."""
