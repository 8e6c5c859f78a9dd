"""The simulator of generating services: replicas with tokens, KV memory and prefix caches."""
