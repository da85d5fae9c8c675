from ..shield import import_numba

import_numba()
