"""Lengths of prompts and answers, learned from counters. Pure."""
