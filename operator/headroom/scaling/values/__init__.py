"""The inputs and outputs of the decision: plain immutable values."""
