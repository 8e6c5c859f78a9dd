"""Tools for the Helm chart: files copied from deploy/base, the values table, running Helm."""
