"""The Helm chart: what it shares with the plain manifests, its table of values, and Helm itself."""
