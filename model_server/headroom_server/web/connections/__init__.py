"""Connections over HTTP/1.1: bounded reads in turns, requests in order, answers, streams."""
