"""Name of the resource: group, version, kind and plural."""

GROUP = "headroom.dev"
VERSION = "v1alpha1"
KIND = "InferenceService"
PLURAL = "inferenceservices"
API_VERSION = f"{GROUP}/{VERSION}"
