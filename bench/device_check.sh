#!/bin/bash
# What only a GPU tells of the CUDA kernels, in minutes, and without a network:
#     bench/device_check.sh --build DIR        compiles all that it needs, on any machine: --arch 9.0a, --jobs N
#     bench/device_check.sh --cubins DIR       runs it on a card and compiles nothing: --stage NAME, --minutes 4
# PYTHON (python3) needs numpy, numba and numba-cuda, and torch or CuPy for what is measured against them. Results go,
# a line of JSON each, to $OUT or to bench/results.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
package=$(mktemp -d) # the clone as a package, so that nothing has to be installed
trap 'rm -rf "$package"' EXIT
mkdir "$package/nbkernels"
ln -s "$root"/nbkernels/* "$package/nbkernels/" # of which dispatch is a link itself
PYTHONPATH=$package${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 "${PYTHON:-python3}" "$root/bench/device_check.py" "$@"
