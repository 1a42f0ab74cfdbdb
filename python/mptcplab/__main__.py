"""`python -m mptcplab` is the command line."""

from mptcplab.cli import main

main()
