"""Compares measured figures with what is promised, and says what was found."""
