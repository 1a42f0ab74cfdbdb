"""Reads the output directory of a sweep: the tables, samples sorted by entity, the resolved scenario of every run."""
