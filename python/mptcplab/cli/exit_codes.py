"""Exit codes of the command line; 0 is success."""

FAILED, ERROR, INTERRUPTED = 1, 2, 130
