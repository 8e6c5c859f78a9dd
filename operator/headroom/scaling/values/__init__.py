"""The inputs and outputs of the decision: plain immutable values.

`tuning` holds its constants, `checkpoint_numbers` reads and writes the numbers of a checkpoint.
"""
