"""The rules: how many replicas each asks for, and all of them combined."""
