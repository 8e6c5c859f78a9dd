"""Capacity planning: replicas for a workload, a cost and an SLO target.

Pure: rates, costs and measurements are values, and so are plans.
"""
