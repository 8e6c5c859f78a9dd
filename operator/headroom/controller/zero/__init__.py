"""No replica at all: when nobody asks, and at once one again when somebody does."""
