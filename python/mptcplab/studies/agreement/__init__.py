"""Agreement of engines: one scenario on several, how far they lie apart, and what in their traces may say why.

`api.agree` runs it for one scenario, `matrix.measure` for those of all papers. Bounds and verdicts are in `judge`, what
may be the cause in `causes`; numbers come from `metrics.engines`.
"""
