"""The pipeline of a study: plan > run > store > measure > judge > page.

A study declares cells (one treatment at one point of an experiment), the statements that are judged, and the text of
its page; the rest is here. `cell` has the runs of a cell and the digest of its result, `execute` runs the cells that
the `store` does not have, `measure` reduces traces to metrics, `values` reads these back, `statistics` and `verdict`
judge, and `page` writes.
"""
