"""The operations as ops of `torch.library`.
`nbkernels.torch.linear(x, weight, bias)` is a step of torch's autograd, and of torch.compile, torch.export, vmap,
autocast and FakeTensor.

Importing this module registers every operation of the table in torch's namespace "nbkernels":
`torch.ops.nbkernels.mm(a, b)` and `nbkernels.torch.mm(a, b)` are one op. The functions take what those of nbkernels
take, of tensors alone. docs/torch.md says more.

>>> import torch, nbkernels.torch                                    # doctest: +SKIP
>>> x = torch.ones(2, 3, requires_grad=True)                         # doctest: +SKIP
>>> nbkernels.torch.mm(x, torch.ones(3, 2)).sum().backward()         # doctest: +SKIP
"""

try:
    import torch as _torch
except ImportError as error:
    raise ImportError("nbkernels.torch needs torch, which is not installed: pip install 'nbkernels[torch]'") from error

if not hasattr(_torch.library, "register_vmap"):
    raise ImportError(f"nbkernels.torch needs torch 2.5 or later, and this is {_torch.__version__}")

from . import register as _register  # noqa: F401 torch.ops.nbkernels
from .functions import FUNCTIONS as _FUNCTIONS

globals().update(_FUNCTIONS)
__all__ = list(_FUNCTIONS)
