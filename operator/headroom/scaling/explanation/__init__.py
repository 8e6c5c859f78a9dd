"""Explains a decision to people: its reason, message, counterfactuals and promises."""
