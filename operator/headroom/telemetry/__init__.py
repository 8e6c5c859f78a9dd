"""From what a model server exposes to the samples that the decision works on. Pure."""
