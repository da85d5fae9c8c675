#!/bin/bash
# Everything about the CUDA kernels that only a GPU can tell, in one command and without a network:
#     [PYTHON=python3] bench/device_check.sh [--tune] [--quick] [--correctness]
# PYTHON needs numpy, numba, numba-cuda and CUDA's libnvvm, nvJitLink and NVRTC (numba-cuda[cu13] brings them); torch and
# CuPy are measured where they are. Results go to $OUT, or to bench/results.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
package=$(mktemp -d) # the clone as a package, so that nothing has to be installed
trap 'rm -rf "$package"' EXIT
mkdir "$package/nbkernels"
ln -s "$root"/nbkernels/* "$package/nbkernels/"
ln -s "$root/dispatch" "$package/nbkernels/dispatch"
PYTHONPATH=$package${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 "${PYTHON:-python3}" "$root/bench/device_check.py" "$@"
