"""python -m nbkernels"""

import sys

from nbkernels.cli import main

sys.exit(main())
