"""Python in a process of its own."""

import os
import subprocess
import sys


def python(code, *arguments, **environment):
    """What the code prints; its environment is this process's, with these variables."""
    line = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(line, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
