"""Reads and checks the arguments of a call."""
