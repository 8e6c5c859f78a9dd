"""Admission of requests: the valid ones that would be answered in time. Pure."""
