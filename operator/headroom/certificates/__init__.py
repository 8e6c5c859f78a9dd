"""Certificates of the connections to the operator, and the time of each renewal. Pure."""
