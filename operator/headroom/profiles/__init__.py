"""Profiles of model servers: probes, arguments and metrics, one value per server. Pure data."""

from headroom.profiles.catalogue import CUSTOM, PROFILES, profile_named
from headroom.profiles.values import Histogram, Label, Metric, Profile

__all__ = ["CUSTOM", "PROFILES", "Histogram", "Label", "Metric", "Profile", "profile_named"]
