"""Agreement of engines: how far the results of one scenario on several engines lie apart, and possible causes.

`compare.agree` does it for one scenario, `matrix.measure` for those of all papers. Bounds and verdicts are in `judge`,
possible causes in `causes`; the numbers come from `metrics.differences`.
"""
