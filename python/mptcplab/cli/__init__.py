"""The command line: every command calls a public function and prints what it returns.

Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a check failed, 2 error, 130 interrupted, 129 or
143 ended by SIGHUP or SIGTERM.
"""

from mptcplab.cli.app import app, main

__all__ = ["app", "main"]
