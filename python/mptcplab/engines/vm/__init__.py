"""The engine `vm`: a stock kernel in an emulated machine whose time is counted in instructions.

`host` says whether this machine can run it, `kernels` finds kernels (`debian` downloads them, `modules` selects what
they load), `machine` runs jobs in emulated machines, and `engine` makes the runs of a sweep with them.
"""
