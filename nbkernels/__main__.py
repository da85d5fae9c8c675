"""Run the command line: python -m nbkernels."""

import sys

from nbkernels.cli import program

sys.exit(program())
