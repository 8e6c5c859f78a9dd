"""Forecasts the arrival rate for the time when a replica requested now would be ready."""
