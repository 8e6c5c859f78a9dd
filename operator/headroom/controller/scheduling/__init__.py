"""When each service is evaluated: the tick period and the queue of ticks."""
