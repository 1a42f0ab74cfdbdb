"""Calls auditwheel for a wheel of another processor than this machine's.

usage: audit.py ARCH ARGUMENT...

auditwheel can check such a wheel, but accepts as `--plat` only platforms of the processor that it finds itself on.
"""

from __future__ import annotations

import sys

from auditwheel.architecture import Architecture
from auditwheel.main import main

if __name__ == "__main__":
    wanted = Architecture(sys.argv.pop(1))
    Architecture.detect = staticmethod(lambda **_: wanted)
    sys.exit(main())
