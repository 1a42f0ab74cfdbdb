"""Reads what a sweep left in a directory: the tables, samples sorted by entity, the resolved scenario of every run."""
