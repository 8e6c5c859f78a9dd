"""Capacity planning: from a workload, a cost and a promise to replicas, and back.

Pure: rates, costs and measurements come in as values, and plans go out as values.
"""
