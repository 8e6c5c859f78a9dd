"""The production decision and its peers on a virtual clock, over a request-level plant."""
