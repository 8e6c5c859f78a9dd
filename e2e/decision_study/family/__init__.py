"""A family of random workloads, plants, cold starts, routings and clients, in two sets by seed.

Constants of the decision are chosen on the set `develop` only; the set `judge` shows whether
they hold for workloads that decided none of them.
"""
