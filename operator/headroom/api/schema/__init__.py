"""The schema: the CRD generated from the values, manifests and clusters compared with it. Pure."""
