"""Arrays of other libraries as NumPy's, and NumPy's as theirs, by DLPack's C interface: 0.1 us, x.numpy() takes 0.9.

A class that has `__dlpack_c_exchange_api__` (DLPack 1.2) gives a table of C functions, one of which describes an object
where its caller says, and makes nothing; one makes an object of memory. https://dmlc.github.io/dlpack/latest/c_api.html,
DLPackExchangeAPI.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from ... import first_calls
from ..compile.cache import compiled, entry
from ..compile.lazy import jit
from ..disk.cached_code import on_disk
from .address import INT32, asked, c_function, pointer, scratch, word
from .ndarray import HEAD, WRITEABLE, address_of, data, descr, dims, ndim, stride
from .new_arrays import INT, NDARRAY, NONE, answer, new_strided, words
from .record import Record, address
from .workspaces import allocate, free

CPU, NAME, VERSION, MAKE, DESCRIBE = 1, b"dlpack_exchange_api", 1, 4, 5  # the last two are words of the table
MOST, DECLINED, NOTHING = 32, 1, -1  # dimensions that are served, of NumPy's 64; answers
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}  # complex tensors may be lazy conjugates
# The class; its two C functions; the addresses of new_arrays.words() and `_released`; Python functions that make an
# array of a NumPy scalar, and count a write; tuple; usual(out), which returns True; an attribute and a method of arrays
# that are False for plain ones; pairs (code | bits << 8 | lanes << 16, address of NumPy's dtype), and a 0.
LENDER = Record("Lender", "cls make describe numpy released given wrote tuple usual true flag method false dtypes[33]")
# Python objects: functions of NumPy's arrays, without out and with it; one of the class's arrays; LENDER's words.
LENT = Record("Lent", "entry into otherwise lender")
# DLManagedTensorVersioned, and its steps.
MANAGED = Record("Managed", f"version array released flags data device kind shape steps offset strides[{MOST}]")
lender_at, lent_at, managed_at = LENDER.pointer(), LENT.pointer(), MANAGED.pointer()
MANAGED_SIZE, STRIDES, STEPS = MANAGED.bytes, 8 * MANAGED["strides"], 8 * MOST

_call = c_function("PyObject_Vectorcall", "int64(int64, int64, int64, int64)")
_method = c_function("PyObject_VectorcallMethod", "int64(int64, int64, int64, int64)")
_attribute = c_function("PyObject_GetAttr", "int64(int64, int64)")
_drop, _forget = c_function("Py_DecRef", "void(int64)"), c_function("PyErr_Clear", "void()")
_alive = c_function("Py_IsInitialized", "int64()")
_enter, _leave = c_function("PyGILState_Ensure", "int64()"), c_function("PyGILState_Release", "void(int64)")


@jit
def _view(lender, x):
    """The address of a view of x, of the lender's class, which does not keep x alive; 0 where there is none."""
    room, steps = scratch(64), scratch(STEPS)
    tensor, i = pointer(room), 0  # data, device, ndim and dtype, shape, strides, offset
    if asked(lender.describe, (x, room)) & INT32 != 0:
        _forget()
        return 0
    device, ndim, dtype = tensor[1] & INT32, tensor[2] & INT32, tensor[2] >> 32
    if device != CPU or tensor[0] == 0 or tensor[4] == 0 or tensor[5] != 0 or ndim > MOST:
        return 0
    while lender.dtypes[i] != dtype:
        i += 2
        if lender.dtypes[i] == 0:
            return 0
    for d in range(ndim):
        pointer(steps)[d] = pointer(tensor[4])[d] * ((dtype >> 8 & 255) >> 3)
    made = new_strided(lender.numpy, lender.dtypes[i + 1], ndim, tensor[3], steps, tensor[0], WRITEABLE)
    if made == 0:
        _forget()
    return made


@functools.cache
def view_entry():
    """answer(lender, x): a view of x, which does not keep x alive, or DECLINED."""

    def run(lender, x):
        made = _view(lender_at(lender), address_of(x))
        return answer(DECLINED * (made == 0), 0, made)

    return entry(run, "answer(int64, object)", "lend_view")


@jit
def _is(value, wanted):
    """Whether a new reference is that object; one that is none is not."""
    if value == 0:
        _forget()
    _drop(value)
    return value == wanted


@jit
def _made(lender, array):
    """A new object of the class that has an array's memory, and takes over its reference; 0 with an exception set, or
    NOTHING where it has no such dtype."""
    i = 0
    while lender.dtypes[i + 1] != descr(array):
        i += 2
        if lender.dtypes[i] == 0:
            _drop(array)
            return NOTHING
    m, dtype, result = managed_at(allocate(MANAGED_SIZE)), lender.dtypes[i], scratch(8)
    m.version, m.array, m.released, m.flags, m.data, m.device = VERSION, array, lender.released, 0, data(array), CPU
    m.kind, m.shape, m.steps, m.offset = ndim(array) | dtype << 32, dims(array), address(m) + STRIDES, 0
    for i in range(ndim(array)):
        m.strides[i] = stride(array, i) // ((dtype >> 8 & 255) >> 3)
    return word(result) if asked(lender.make, (address(m), result)) & INT32 == 0 else 0


@functools.cache
def lent_entry():
    """bind(LENT's words): a function that calls one of its own with views of the arrays of the lender's class, and
    returns what is made as such an array, or out; where anything is unusual, what `otherwise` returns."""

    def run(owner, arguments, count):
        own, there, last = lent_at(data(address_of(owner))), address_of(arguments), address_of(count) - 1
        lender, given, room, done, result = lender_at(data(own.lender)), pointer(there), scratch(64), 0, NOTHING
        numpy, taken, into, kind = pointer(lender.numpy), pointer(room), given[last], 0
        usual = last < 8 and (into == numpy[NONE] or word(into + HEAD - 8) == lender.cls)
        usual = usual and _is(_call(lender.usual, there + 8 * last, 1, 0), lender.true)
        while usual and done <= last:
            x = view = given[done]
            if done > 0 and x == given[0]:  # in place, say
                view = taken[0]
            elif word(x + HEAD - 8) == lender.cls:
                plain = _is(_attribute(x, lender.flag), lender.false)
                plain = plain and _is(_method(lender.method, there + 8 * done, 1, 0), lender.false)
                view = _view(lender, x) if plain else 0
            usual = view != 0
            if usual:
                taken[done] = view
                done += 1
        if usual:
            result = _call(own.entry if into == numpy[NONE] else own.into, room, last + 1, 0)
            kind = word(result + HEAD - 8) if result != 0 else 0
        fresh, wrote = kind == numpy[NDARRAY], kind != 0 and into != numpy[NONE] and result == taken[last]
        for i in range(done):
            if taken[i] != given[i] and (i == 0 or taken[i] != taken[0]):
                fresh = fresh and data(taken[i]) != data(result)
                _drop(taken[i])
        if fresh:
            result = _made(lender, result)
        elif kind != 0:
            taken[0], result = result, NOTHING
            if kind not in (numpy[NDARRAY], numpy[INT], lender.tuple) and taken[0] != numpy[NONE]:  # a NumPy scalar
                result = _call(lender.given, room, 1, 0)
            _drop(taken[0])
        if wrote:
            counted = _call(lender.wrote, there + 8 * last, 1, 0)
            _drop(counted)
            return answer(0, into if counted != 0 else 0, 0)
        return answer(0, 0, result if result != NOTHING else _call(own.otherwise, there, last + 1, 0))

    return entry(run, "answer(owner, arguments, count)", "lend_call", bound=True)


def at_hand() -> bool:
    """Whether the entry is compiled, or is to be for any call."""
    return first_calls.CALLS < 1 or lent_entry.cache_info().currsize > 0 or on_disk("lend_call")


@functools.cache
def _released() -> int:
    """The address of what DLPack calls when nobody has the memory any more, in any thread."""

    def run(room):
        if _alive() & INT32 != 0:
            state = _enter()
            _drop(managed_at(room).array)
            _leave(state)
        free(room)

    return compiled(run, "void(int64)", "lend_released")


def lender(cls, others, given, wrote, usual, flag, method):
    """(LENDER's words for a class, what must live as long), `others` being dtypes that NumPy has no name for; None
    where the class has no such interface of version 1."""
    get, capsule = ctypes.pythonapi.PyCapsule_GetPointer, getattr(cls, "__dlpack_c_exchange_api__", None)
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    try:
        table = (ctypes.c_int64 * (1 + DESCRIBE)).from_address(get(capsule, NAME))
    except ValueError:  # no capsule of that name
        return None
    if table[0] & INT32 != VERSION:
        return None
    made, kept = LENDER.array(), (capsule, given, wrote, usual, flag, method)
    made.make, made.describe, made.numpy = table[MAKE], table[DESCRIBE], words().ctypes.data
    made.cls, made.given, made.wrote, made.usual = map(id, (cls, given, wrote, usual))
    made.flag, made.method, made.tuple, made.true, made.false = map(id, (flag, method, tuple, True, False))
    for i, value in enumerate(_kinds(others)):
        made[LENDER["dtypes"] + i] = value
    return made, kept


def _kinds(others):
    """(code | bits << 8 | lanes << 16, address of the dtype) of each dtype, the commonest first."""
    for dtype in map(np.dtype, ("float32", "float64", "int64", "int32", "bool", "float16", "int8", "uint8", "int16",
                                "uint16", "uint32", "uint64", *others)):  # fmt: skip
        yield CODES[dtype.name.rstrip("0123456789")] | 8 * dtype.itemsize << 8 | 1 << 16
        yield id(dtype)


def compiled_call(function, into, otherwise, lender):
    """A compiled function of arrays of the lender's class: it calls `function` with views of them, or `into` where an
    out is given, or `otherwise` with the arrays themselves."""
    lender.released = _released()
    owner = np.empty(4, object)
    owner[:3], owner[3] = (function, into, otherwise), np.frombuffer(lender, np.int64)
    return lent_entry()(owner)
