"""Run as a program: becomes another one that is killed when its parent dies, however that comes about (Linux).

python guard.py PARENT PROGRAM ARGUMENT…      PARENT: the number of the process that must be there
"""

import ctypes
import os
import signal
import sys

_SET_SIGNAL_AT_PARENTS_DEATH = 1  # prctl's PR_SET_PDEATHSIG, which outlasts exec

if __name__ == "__main__":
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):  # it died before the kernel was told
        sys.exit(1)
    os.execv(sys.argv[2], sys.argv[2:])
