"""The command line as a program: `mptcplab`, or `python -m mptcplab`."""

from __future__ import annotations

import signal


def main() -> None:
    """Entry point. Until the command can say that it was interrupted, Ctrl-C ends it without a message."""
    interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mptcplab import cli

    signal.signal(signal.SIGINT, interrupt)
    cli.main()


if __name__ == "__main__":
    main()
