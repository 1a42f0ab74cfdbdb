"""The fluid engine: the published differential equations of window algorithms on a scenario's graph.

It answers in a fraction of a second what the equations say: windows, rates and losses over time, and where they come
to rest. docs/fluid.md has the equations, their sources and their limits; `engine.run` solves a scenario.
"""
