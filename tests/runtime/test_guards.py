"""Guards at the edges of what the library reads and writes: rooms, copies, layouts, a forked child."""

import ctypes
import dataclasses
import itertools
import os

import numba
import numpy as np
import pytest

import nbkernels as nb
from nbkernels import dtypes, strides
from nbkernels.cpu.elementwise import elementwise
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.runtime import threads
from nbkernels.dispatch import foreign, layout, views
from nbkernels.jit.compile.cache import compiled
from nbkernels.jit.ir.vector import width_bits
from tests import reference
from tests.compare import same_bits
from tests.processes import python


@pytest.mark.parametrize("item", [1, 4])
def test_distinct_is_what_counting_addresses_says(item):
    """It may say no of elements that share no memory, never yes of some that do; of nested dimensions it says yes."""
    steps = (0, 1, item, 2 * item, 3 * item, 4 * item, -2 * item, 6 * item)
    for sizes in ((3,), (2, 3), (3, 2), (3, 3), (2, 2, 3)):
        for step in itertools.product(steps, repeat=len(sizes)):
            firsts = sorted(sum(i * s for i, s in zip(index, step)) for index in np.ndindex(sizes))
            apart = all(b - a >= item for a, b in itertools.pairwise(firsts))
            said = strides.distinct(sizes, step, item)
            assert apart or not said, (sizes, step)
            order = sorted(zip(map(abs, step), sizes))
            nested = all(s >= item + sum(t * (n - 1) for t, n in order[:i]) for i, (s, _) in enumerate(order))
            assert said == nested, (sizes, step)


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (0, 4), (3, 0)])
def test_strides_of_empty_results_are_those_of_arrays_with_one_element_there(shape):
    """No step is 0, which would say that elements share memory."""
    one = np.empty([max(n, 1) for n in shape])
    assert strides.output_strides(shape, (shape,), (one.strides,), 8) == one.strides


def producer(x, **lies):
    """An object that exports x by DLPack, with fields of its capsule as they are given."""

    class Producer:
        def __dlpack__(self, **options):
            capsule = x.__dlpack__(max_version=(1, 0))
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
            managed = foreign.Versioned.from_address(get(capsule, b"dltensor_versioned"))
            for name, value in lies.items():
                setattr(managed if name == "major" else managed.tensor, name, value)
            return capsule

        def __dlpack_device__(self):
            return 1, 0

    return Producer()


def test_layouts_views_and_capsules():
    assert layout.c_strides((2, 0, 3), 4) == (12, 12, 4)
    assert layout.reach((3,), (4,)) == (0, 8)
    assert layout.reach((2, 3), (-24, 8)) == (-24, 16)
    assert views.expand(np.ones((1, 3)), (2, 3)).strides == (0, 8)
    room = np.zeros(16, np.uint8)
    number, last, beyond = room[:8].view("f8"), room[7:8], room[8:9]
    assert views.overlap(number, last)
    assert views.overlap(last, number)
    assert not views.overlap(number, beyond)
    with pytest.raises(TypeError, match=r"DLPack 2\.0; version 1 is known"):
        foreign.from_dlpack(producer(np.ones(3), major=2))
    memory = foreign.from_dlpack(producer(room, byte_offset=3))
    assert memory.pointer == room.ctypes.data + 3
    with pytest.raises(ValueError, match=r"^add: casting must be one of"):
        nb.add(np.ones(3), 1, casting="sure")


def test_inputs_are_set_apart_from_an_out_that_is_not_the_same_elements():
    x = np.arange(9.0).reshape(3, 3)
    for out, given in ((x, x.T), (x[1:], x[:-1]), (x[::-1], x)):
        assert not np.shares_memory(elementwise.apart(out, given), out)
        np.testing.assert_array_equal(elementwise.apart(out, given), given)
    same = x[:]
    assert elementwise.apart(x, same) is same


def test_a_layout_met_before_whose_input_begins_where_out_does():
    """The elements of an input are out's in another order, call after call by one plan; the same plan where they are
    in another array."""
    mask = np.ones((5, 5), bool)
    for shared in (False, True, True, False, True):
        x = np.arange(25.0).reshape(5, 5)
        given = x.T if shared else x.copy().T
        nb.add(given, 1, out=x, where=mask)
        np.testing.assert_array_equal(x, np.arange(25.0).reshape(5, 5).T + 1)


def test_functions_of_one_code_that_close_over_different_numbers():
    def adds(k):
        return lambda x: x + k

    x = np.arange(3.0)
    assert [nb.fuse(adds(k), x).tolist() for k in (1.0, 2.0, 1.0)] == [[1, 2, 3], [2, 3, 4], [1, 2, 3]]


FACTOR, MATRIX = 1 + 2j, np.array([[1 + 1j, 2], [3j, 4 - 1j]], "c8")
# Each a function of x with one complex factor, and its gradient but for the factor's conjugate.
FACTORS = {
    "beta of addmm": (lambda x: nb.addmm(x, MATRIX, MATRIX, beta=FACTOR), lambda grad: grad),
    "beta of addmv": (lambda x: nb.addmv(x, MATRIX, MATRIX[0], beta=FACTOR), lambda grad: grad),
    "alpha of add": (lambda x: nb.add(MATRIX, x, alpha=FACTOR), lambda grad: grad),
    "alpha of subtract": (lambda x: nb.subtract(MATRIX, x, alpha=FACTOR), lambda grad: -grad),
    "alpha of addmm, mat1": (
        lambda x: nb.addmm(MATRIX, x, MATRIX, alpha=FACTOR), lambda grad: grad @ MATRIX.conj().T,
    ),
    "alpha of addmm, mat2": (
        lambda x: nb.addmm(MATRIX, MATRIX, x, alpha=FACTOR), lambda grad: MATRIX.conj().T @ grad,
    ),
    "alpha of addmv, vec": (
        lambda x: nb.addmv(MATRIX[0], MATRIX, x, alpha=FACTOR), lambda grad: MATRIX.conj().T @ grad,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FACTORS)
def test_a_complex_factor_is_conjugated_in_a_gradient(case):
    function, gradient = FACTORS[case]
    x = MATRIX[1] if "addmv" in case else MATRIX.T
    grad = np.array([[1j, 2], [3, 4 - 1j]], "c8")[0 if "addmv" in case else slice(None)]
    result, pull = nb.vjp(function, x)
    np.testing.assert_allclose(pull(grad)[0], FACTOR.conjugate() * gradient(grad))


SUMS = """
import ctypes
import sys
import numpy as np, nbkernels as nb
from nbkernels.cpu.gemv import dot
if sys.argv[1] == "beyond":  # so that it is known to be seen
    memory = ctypes.pythonapi.PyMem_RawMalloc
    memory.restype, free = ctypes.c_void_p, ctypes.pythonapi.PyMem_RawFree
    place = ctypes.c_void_p(memory(ctypes.c_size_t(4096)))
    ctypes.memset(place.value + 4096, 0, 1)
    free(place)
for dtype in "f4", "f8", "c8", "c16":
    for extra in -1, 0, 1:  # more segments than the stack holds, the last of them whole or of one element
        one = np.broadcast_to(np.ones((), dtype), 4096 * (dot.HERE // np.dtype(dtype).itemsize + 1) + extra)
        assert nb.dot(one, one) == len(one)  # sums of whole numbers below 2**24 are exact
for dtype in "f4", "f8":
    for k in 4095, 4096, 4097, 8193:
        a, x, out = np.broadcast_to(np.ones(k, dtype), (4500, k)), np.ones(4500, dtype), np.ones(4500, dtype)
        assert nb.addmv(x, a, a[0], alpha=2.0, out=out) is out and (out == 1 + 2 * k).all()
        nb.addmm(x[:, None], a, a[:1].T, alpha=2.0, out=out[:, None])
        assert (out == 1 + 2 * k).all()
"""


def test_the_sums_of_large_vectors_fit_their_room():
    """A number for each output and segment, in memory beyond whose ends Python looks."""
    python(SUMS, "within", PYTHONMALLOC="debug")
    with pytest.raises(AssertionError, match="Debug memory block"):
        python(SUMS, "beyond", PYTHONMALLOC="debug")


def field(x, gap):
    """x as a field of packed records, its steps no multiple of its items."""
    step = x.itemsize + gap
    room = np.full(max(x.size, 1) * step + 64, 0x5A, np.uint8)
    strides_ = tuple(step * (n // x.itemsize) for n in x.strides)
    view = np.ndarray(x.shape, x.dtype, room, 0, strides_)
    view[...] = x
    return view


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("gap", [1, 2, 3])
def test_vectors_and_matrices_of_packed_records(dtype, gap, rng):
    """self, mat and vec of addmv, each alone, and out, whose steps are no multiple of an item."""
    for m, k in ((5, 7), (40, 33), (3, 4100)):
        x, a, v = (rng.standard_normal(shape).astype(dtype) for shape in (m, (m, k), k))
        expected = reference.addmv(x, a, v, 0.5, -2) if dtype == "f4" else nb.addmv(x, a, v, beta=0.5, alpha=-2)
        for odd in range(3):
            args = [field(z, gap) if i == odd else z for i, z in enumerate((x, a, v))]
            same_bits(nb.addmv(*args, beta=0.5, alpha=-2), expected)
            out = field(np.full(m, np.nan, dtype), gap)
            assert nb.addmv(*args, beta=0.5, alpha=-2, out=out) is out
            same_bits(out, expected)
        own = field(x, gap)
        assert nb.addmv_(own, a, v, beta=0.5, alpha=-2) is own
        same_bits(own, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_inner_products_of_packed_records(dtype, rng):
    """Either vector's steps, or both's, no multiple of an item."""
    for k in (2, 70, 5000):
        a, b = (rng.standard_normal(k).astype(dtype) for _ in range(2))
        for function in (nb.dot, nb.vdot):
            expected = function(a, b)
            for left, right in ((field(a, 1), b), (a, field(b, 1)), (field(a, 3), field(b, 2))):
                same_bits(function(left, right), expected)


def test_numbers_as_they_are_settled():
    """A logic's number that is 0 in the other's dtype is a bool first; nothing else becomes one."""
    half = np.zeros(1, np.float16)
    assert [dtypes.settled("logical_or", number, half) for number in (1e-9, 0.0, 1e-9j)] == [True, False, True]
    assert dtypes.settled("add", 1e-9, half) == 1e-9


def test_what_is_not_chosen_leaves_a_sum_its_sign():
    """-0.0 is what leaves a sum as it is; 0.0 makes +0.0 of -0.0."""
    x, mask = np.array([-0.0, 5.0, -0.0]), np.array([True, False, True])
    for dtype in ("f2", "f4", "f8"):
        assert np.signbit(np.add.reduce(x.astype(dtype), where=mask, initial=-0.0))
        assert np.signbit(nb.add.reduce(x.astype(dtype), where=mask, initial=-0.0))


def test_rows_of_packed_records(rng):
    """Rows that are no whole number of items apart, whose elements touch."""
    for dtype in ("f4", "f8", "c8"):
        a, b = (rng.integers(-4, 5, (9, 9)).astype(dtype) for _ in range(2))
        room = np.zeros(9 * (9 * a.itemsize + 1), np.uint8)
        rows = np.ndarray(a.shape, a.dtype, room, 0, (9 * a.itemsize + 1, a.itemsize))
        rows[...] = a
        for left, right in ((rows, b), (a, rows), (rows.T, rows)):
            np.testing.assert_array_equal(nb.mm(left, right), left.copy() @ right.copy())


def test_folds_of_masks_and_of_outs_in_their_input():
    x, mask, out = np.full((4, 2), -0.0), np.ones((4, 2), bool), np.ones(4)[::2]
    assert not np.signbit(nb.add.reduce(x, 0, where=mask, out=out)).any()  # from the identity, 0.0
    x = np.arange(12.0).reshape(3, 4)
    expected = np.add.reduce(x, 1, initial=1.0)
    np.testing.assert_array_equal(nb.add.reduce(x, 1, initial=1.0, out=x[2, :3]), expected)


def test_tiles_that_are_illegal_by_one():
    base, registers = tiles.default("float32"), tiles.vector_registers()
    lanes = width_bits() // 32
    assert not tiles.illegal(base, "float32")
    for change, why in (
        (dict(kc=tiles.SEGMENT + 8), "exceeds the segment"),
        (dict(nb=base.nb + 1), "not a multiple of nr"),
        (dict(mr=registers, nr=lanes, nb=lanes, nc=lanes, mc=registers), "vector registers"),
    ):
        assert any(why in reason for reason in tiles.illegal(dataclasses.replace(base, **change), "float32"))


def test_a_helper_that_is_awake_does_all_that_is_its():
    def count(hits, task):
        hits[task] += 1

    address, hits = compiled(count, "void(CPointer(int64), int64)", "test_count"), np.zeros(4, np.int64)
    for _ in range(3000):
        threads.launch(address, hits.ctypes.data, 4)
    assert hits.tolist() == [3000] * 4


FORKED = """
import os, sys
import numpy as np, numba, nbkernels
from nbkernels.cpu.runtime import threads
x = np.ones(300_000, np.float32)
nbkernels.add(x, x)
assert threads.open_up() and threads._words.helpers
places = threads._words.places
threads._words.busy = 1  # a launch under way in another thread, which the child has not
child = os.fork()
if child == 0:
    assert not any(threads._words), threads._words
    assert (nbkernels.add(x, x) == 2).all()
    threads.open_up()
    assert threads._words.busy == 0 and threads._words.places != places
    os._exit(0)
threads._words.busy = 0
assert os.waitpid(child, 0)[1] == 0
print("alive")
"""


def test_a_forked_child_has_helpers_of_its_own():
    """Nothing of the launches of its parent, whose helpers it has not: not their places, nor that one is under way."""
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork, which this system lacks")
    if numba.config.NUMBA_NUM_THREADS < 2:
        return
    assert python(FORKED, PYTHONWARNINGS="ignore") == "alive\n"
