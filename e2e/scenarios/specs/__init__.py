"""Scenarios of specs: the stored form of each, and the message of each rejection."""
