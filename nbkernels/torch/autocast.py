"""Autocast: products take its dtype, as torch's own do; element-wise operations promote what they are given."""

from __future__ import annotations

import torch

LOWER = frozenset(
    "addmm mm addmm_activation bmm baddbmm addbmm mv addmv outer addr dot vdot matmul linear".split()
)  # fmt: skip


def lowered(form, device):
    """The kernel of a product where autocast is on: floats but float64 are cast, and autocast is off inside."""

    def cast(x, dtype):
        low = isinstance(x, torch.Tensor) and x.is_floating_point() and x.dtype != torch.float64
        return x.to(dtype) if low and x.device.type == device else x

    def kernel(*args, **keywords):
        dtype = torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):
            return form.of_torch(*(cast(x, dtype) for x in args), **keywords)

    return kernel
