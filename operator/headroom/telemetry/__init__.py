"""Reads what model servers expose into the samples that the decision works on. Pure."""
