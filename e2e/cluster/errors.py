"""Errors of a cluster, with what happened and the next step."""

from __future__ import annotations


class ClusterError(Exception):
    """Something the cluster needs is missing or has failed; the message ends with the next step."""


class NotPossibleError(ClusterError):
    """The request cannot work on this machine or for this user; a retry does not help."""
