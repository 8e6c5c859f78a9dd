"""What goes wrong with a cluster, said to a person: what happened and what to do next."""

from __future__ import annotations


class ClusterError(Exception):
    """Something the cluster needs is missing or has failed; the message ends with the next step."""


class NotPossibleError(ClusterError):
    """What was asked for cannot run on this machine or for this user, however often it is tried."""
