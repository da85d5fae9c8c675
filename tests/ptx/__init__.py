"""An interpreter of PTX in NumPy: kernels run without a GPU, bit by bit, and what a GPU forbids is trapped.

    from tests import ptx

    memory = ptx.Memory(c, readonly_a, b)                # NumPy arrays, at their own addresses
    ptx.run(text, grid, block, [c.ctypes.data, a.ctypes.data, n, np.float32(2)], memory, shared=bytes, cluster=2)

`text` is a module with one entry, as nbkernels.cuda.assemble.ptx(kernel, cc) gives it. Arguments are what the driver
is handed: an int is 8 bytes, a number of NumPy's has its own size, a tensor map is a `ptx.TensorMap(address, dims,
strides in bytes, box, dtype, swizzle)`, sizes innermost first. Memory.maps has maps that lie in global memory, by their
addresses. A whole call, with all that the host does for it, runs on a `Device`:

    gpu = ptx.Device(cc=(9, 0)).installed(monkeypatch)
    gemm.gemm(gpu.array(out), None, gpu.array(a), gpu.array(b), 0, 1)     # writes NumPy's out; gpu.launches has notes

`ptx.Trap` is raised, with the instruction, for

- misaligned accesses, accesses outside the registered arrays, stores to read-only ones (memory.py)
- shared memory: reads of what nobody wrote, and races: two accesses, one of them a store, that no barrier, mbarrier or
  bar.warp.sync orders; cp.async, bulk copies and wgmma that were not waited for; a missing fence.proxy.async before
  what reads asynchronously (shared.py, order.py: vector clocks, so that no lucky order of threads hides a race)
- wgmma: registers of sums touched before a wait, or written without wgmma.fence (inflight.py)
- deadlocks, barriers that threads of a block do not reach, instructions of whole warps without some of their lanes
- mbarriers with more arrivals than expected, or without initialisation; blocks of a cluster that end too early

Numbers: all is rounded once as the opcode says, fma too. ex2, lg2, sin, cos, tanh, rcp and the like in their .approx
forms are rounded correctly, which a GPU's are not. Tensor cores: numerics.py. Blind to: races in global memory, timing,
how many registers there are, and what of a bulk load comes late (it comes at once, and its order is judged instead).

Where things are: parse.py (text -> Program), operands.py, instructions.py (the table of opcodes), machine.py (threads
of blocks in step, lowest place first), launch.py (grids), memory.py, shared.py, order.py; opcodes in arithmetic.py,
real.py, moves.py, control.py (branches, barriers), warps.py (shuffles, votes), atomics.py, copies.py (cp.async),
barriers.py (mbarrier), bulk.py and tensormap.py (TMA), clusters.py, matrix.py (ldmatrix, stmatrix, mma.sync), wgmma.py;
fragments.py knows which element of a tile a register holds, programs.py makes small programs for tests.
An opcode that is not there raises NotImplementedError by its name.
"""

from .device import Device
from .launch import run
from .memory import Memory, Trap
from .tensormap import TensorMap

__all__ = ["Device", "Memory", "TensorMap", "Trap", "run"]
