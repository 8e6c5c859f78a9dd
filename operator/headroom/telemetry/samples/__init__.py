"""Makes the samples of the decision from readings: counts, gauges, and checks of both. Pure."""
