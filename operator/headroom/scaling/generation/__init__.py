"""Sizes services that generate tokens: by engine time, memory, seats and the tails of promises."""
