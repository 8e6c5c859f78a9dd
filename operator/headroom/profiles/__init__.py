"""Profiles of model servers: probes, arguments and metrics, one value per server. Pure."""

from headroom.profiles.catalogue import CUSTOM, PROFILES, profile_named
from headroom.profiles.quantities import Histogram, Label, Metric
from headroom.profiles.values import Profile

__all__ = ["CUSTOM", "PROFILES", "Histogram", "Label", "Metric", "Profile", "profile_named"]
