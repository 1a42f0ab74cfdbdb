"""Runs on a cluster of Dask: which workers may take part, what they need and return, and tasks that survive them.

A task has the digest of its result as its key, so that the scheduler makes equal results once, whoever asks. Workers
need this build and nothing else: a task brings the scenario with the files that it names.
"""
