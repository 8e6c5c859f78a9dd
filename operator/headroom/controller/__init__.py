"""One service, one tick: gather, decide, act, report.

Around it: when ticks are due, and what is known of the cluster.
"""
