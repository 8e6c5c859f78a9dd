"""Wires adapters, controller, console and endpoints into the operator process."""
