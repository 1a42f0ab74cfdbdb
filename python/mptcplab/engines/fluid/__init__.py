"""The fluid engine: the published differential equations of window algorithms on a scenario's graph.

It solves a run in a fraction of a second: windows, rates and losses over time, and their equilibrium. docs/fluid.md has
the equations, their sources and their limits; `engine.run` solves a scenario.
"""
