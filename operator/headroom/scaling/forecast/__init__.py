"""Expects the arrival rate of the time when a replica started now becomes ready."""
