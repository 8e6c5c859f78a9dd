"""Scenarios of the chart, of the release and of the documented commands."""
