"""Tools for the Helm chart: files copied from deploy/base, descriptions of values, running Helm."""
