"""Element-wise operations made of scalar functions: `elementwise` of any, `fuse` of an expression."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import CellType, FunctionType
from typing import Any

import numpy as np

from .dispatch import arrays, errors, keys
from .dispatch.operands import Operand, check_writable
from .dispatch.run import ordered, view
from .dtypes import known, stated
from .frozen import Frozen, content, told
from .ops import FUSED
from .pickled import reduced
from .strides import broadcast_shapes, output_strides

MOST = 8  # arguments
LAYOUTS = 256  # of calls that are not checked again
VERSIONS = 1024  # of functions, by what they read
NUMBERS = (bool, int, float, complex)
MASK = "where="  # which no parameter is called
# imported at the first call
ADOPT, REPLAY = "nbkernels.jit.user.scalar_function", "nbkernels.cuda.replay"
JITTED = "nbkernels.jitted.objects"
FORWARD, FIT = "nbkernels.autograd.forward", "nbkernels.autograd.gradients"


def elementwise(function=None, *, dtypes=None, gradient=None) -> Any:
    """out[i] = function(x[i], y[i], ...) for any scalar Python function: an operation on arrays of every kind

    The function takes one to eight numbers and returns one, or a tuple of them. It is compiled once for the dtypes that
    it is called with (Python numbers in it are weak, as in NumPy 2), and found again on disk. The operation broadcasts,
    takes Python numbers, `out=` (an array, or a tuple of them for several results) and `where=` (elements where it is
    False are not written), and runs where the arrays are. `dtypes` gives the results' dtypes, else they are inferred.

    A tape goes back through it by the function's own derivative, found by forward differentiation, or by `gradient`: a
    scalar function (grad, *arguments), one grad for each result, that returns the gradient of each argument: grad times
    the conjugate of the derivative.

    Functions of `math` and NumPy are those of `nbkernels.elementary` where it has them, `nbkernels.sqrt` and the other
    element-wise operations are NumPy's; a function may call other plain functions, and what `elementwise` made.
    Globals, closures, arrays and modules that it reads are looked at in each call: it is compiled anew where they
    changed. Raises TypeError, with the reason, for one that Numba cannot compile (lists and dicts are no constants),
    ValueError for shapes that do not broadcast, and what the function raises for an element, such as IndexError; then
    nothing is written.

    The operation pickles: by module and name where another process finds it so, as a NumPy ufunc does, and else (a
    lambda, a function of the main program) with its function by value.

    >>> import math, numpy as np, nbkernels
    >>> @nbkernels.elementwise
    ... def softplus(x, limit):
    ...     return x if x > limit else math.log1p(math.exp(x))
    >>> softplus(np.array([-1.0, 0.0, 100.0]), 30).round(3)
    array([  0.313,   0.693, 100.   ])
    """
    if function is None:
        return lambda function: Elementwise(function, dtypes, gradient=gradient)
    return Elementwise(function, dtypes, gradient=gradient)


_fused = {}  # a function's code, scope and what it closes over -> its operation


def fuse(function, *args, out=None, where=None) -> Any:
    """out = function(*args): a whole expression of arrays in one pass over them, without temporaries

    The function is an expression of its arguments' elements, as for `elementwise`. Without further arguments the result
    is the operation. A lambda that is written in the call is compiled at its first time.

    >>> import numpy as np, nbkernels
    >>> a, b = np.array([1.0, 2.0]), np.array([[3.0], [4.0]])
    >>> nbkernels.fuse(lambda a, b: a * b + 1, a, b)
    array([[4., 7.],
           [5., 9.]])
    """
    function = getattr(function, "py_func", function)
    if not inspect.isfunction(function):
        return Elementwise(function, called="fuse")
    held = [content(cell, function) for cell in function.__closure__ or ()]
    key = function.__code__, id(function.__globals__), *map(told, held)
    operation = _fused.get(key)
    if operation is None:
        cells = tuple(map(CellType, held))  # its own, for another call of this code may change those
        own = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
        operation = Elementwise(own, called="fuse")
        if len(_fused) >= VERSIONS:
            _fused.clear()
        _fused[key] = operation
    return operation(*args, out=out, where=where) if args else operation


def joined(args):
    """A tuple of NumPy's arrays of one dtype of floats, and of numbers as such arrays; None of others."""
    dtype = None
    for x in args:
        if type(x) is np.ndarray and (dtype is None or x.dtype is dtype):
            dtype = x.dtype
        elif type(x) is not float and type(x) is not int:
            return None
    if dtype is None or dtype.kind != "f":
        return None
    try:
        return tuple([x if type(x) is np.ndarray else np.asarray(x, dtype) for x in args])
    except OverflowError:  # an int that is none of its numbers: the checks will say it
        return None


class Version:
    """A function as it was when these values were what it reads, and its calls that have been done: on NumPy arrays by
    their layouts, on a GPU by the arguments' types (cuda/replay.py)."""

    def __init__(self, frozen):
        self.frozen, self.function = frozen, frozen.function
        self.layouts, self.memory, self.recall, self.repeats = {}, None, None, {}


class Elementwise:
    """What `elementwise` returns."""

    def __init__(self, function, dtypes=None, called="elementwise", gradient=None, most=MOST):
        function = getattr(function, "py_func", function)  # of a jitted one what it was made of
        if not inspect.isfunction(function):
            raise TypeError(f"{called}: a Python function is needed, not {errors.describe(function)}")
        self.function, self.__name__, self.__doc__ = function, function.__name__, function.__doc__
        self.py_func = function  # as jitted functions have it: another function may call this one
        self.parameters = tuple(inspect.signature(function).parameters.values())
        plain = all(p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in self.parameters)
        if not plain or not 1 <= len(self.parameters) <= most:
            given = f"{function.__name__}{inspect.signature(function)}"
            raise TypeError(f"{called}: {given} should take one to {most} arguments, without defaults or stars")
        if gradient is not None and not inspect.isfunction(gradient):
            raise TypeError(f"{called}: gradient should be a Python function, not {errors.describe(gradient)}")
        self.slopes, self.most, self.usual = gradient, most, (np.ndarray,) * len(self.parameters)
        given = dtypes if isinstance(dtypes, tuple | list) else () if dtypes is None else (dtypes,)
        self.dtypes = tuple(stated("elementwise", dtype) for dtype in given)
        for dtype in self.dtypes:
            if not known(dtype):
                raise TypeError(f"elementwise: results cannot be of dtype {dtype}")
        self.forget()

    def forget(self):
        """No call was done before by the kernels that there are now."""
        self.now, self.versions, self.kernels = None, {}, FUSED.table.rows

    def __repr__(self):
        return f"<elementwise {self.__name__}({', '.join(p.name for p in self.parameters)})>"

    @property
    def _numba_type_(self):
        """What Numba takes it for where jitted code calls it."""
        return import_module(JITTED).of_elementwise(self)

    def __reduce__(self):
        return reduced(self, Elementwise, self.function, self.dtypes, "elementwise", self.slopes, self.most)

    def version(self):
        """The function for what it reads now."""
        now = self.now
        if now is None or (now.frozen.read and not now.frozen.holds()):
            frozen = Frozen(self.function)
            if len(self.versions) >= VERSIONS:
                self.versions.clear()
            now = self.versions.setdefault(frozen.key, Version(frozen))
            now.frozen = frozen  # the same values, other objects
            self.now = now
        return now

    def __call__(self, *args, out=None, where=None, **unknown):
        if unknown:
            raise errors.unexpected(self.__name__, unknown, ("out", "where"))
        if self.kernels is not FUSED.table.rows:
            self.forget()
        now = self.version()
        types = tuple(map(type, args))
        if now.recall and where is None and (out is None or type(out) is np.ndarray):
            given = args if types == self.usual else joined(args) if len(args) == len(self.usual) else None
            result = given and now.recall(out, given)
            if type(result) is np.ndarray:
                return result
        repeat = now.repeats.get(types) if where is None else None
        if repeat is not None and (result := repeat(*args, out)) is not None:
            return result
        layout = self.layout(args, out, where)
        if layout in now.layouts:
            result = self.again(now, layout, args, out, where)
            if result is not None:
                return result
        name = self.__name__
        if len(args) != len(self.parameters):
            names = ", ".join(p.name for p in self.parameters)
            raise TypeError(f"{name}: takes {len(self.parameters)} arguments ({names}), not {len(args)}")
        values = dict(zip((p.name for p in self.parameters), args)) | ({} if where is None else {MASK: where})
        inputs = {key: self.operand(key, value, True) for key, value in values.items() if type(value) not in NUMBERS}
        outs = [self.operand("out", x) for x in (out if isinstance(out, tuple) else () if out is None else (out,))]
        lead = self.lead([*inputs.values()], outs)
        shape = self.shape(inputs.values())
        dtypes = self.arguments(values, inputs)
        adopted, results = self.adopted(now, dtypes)
        if outs:
            self.check(outs, shape, results)
        watched = next((x.adapter for x in (*inputs.values(), *outs) if x.adapter.intercept), None)
        if watched is not None:
            return watched.apply(self, args, out, where, shape, results)
        if not outs:
            outs = self.allocate(lead, shape, results, inputs)
        if 0 not in shape and lead.device.key != keys.META:
            with lead.adapter.guard(lead.device):
                taken = [
                    self.view(lead, outs[0], inputs.get(key), values[key], dtype) for key, dtype in zip(values, dtypes)
                ]
                mask = self.view(lead, outs[0], inputs.get(MASK), where, np.bool_) if where is not None else None
                run = FUSED.on(lead.device.key, name)
                written = [x.adapter.view(x.value) for x in outs]
                with ordered(written[0], (*taken, mask)):
                    run.load()(now.function, written, taken, mask, out is None)
            if lead.device.key == "CUDA" and types not in now.repeats and run.kernel_name.startswith("nbkernels."):
                now.repeats[types] = repeat = import_module(REPLAY).of_function(
                    self, types, lead.adapter.name, lambda given, out: self(*given, out=out)
                )
                if repeat:
                    repeat(*args, out)  # remembers the kind of this call
            again = layout and run.fast and shape and len(outs) == 1 and not adopted.raises
            if again and len(now.layouts) < LAYOUTS:
                now.layouts[layout] = shape, results[0], outs[0].value.strides, (*dtypes, np.dtype(bool))
        if out is not None:
            for x in outs:
                x.adapter.written(x.value)
            return out
        made = [lead.adapter.wrap(x.value, lead.value) for x in outs]
        return made[0] if len(made) == 1 else tuple(made)

    def gradient(self, *grads, args, where=None, output_mask):
        """The gradients of the arguments, given those of the results: None where output_mask is False."""
        found = import_module(FORWARD).gradient(self, grads, args, where, output_mask)
        fit = import_module(FIT).fit
        return [None if part is None else fit(part, x) for part, x in zip(found, args)]

    def layout(self, args, out, where):
        """What tells calls on NumPy arrays and numbers, with one result, apart; None of other calls."""
        values = args if where is None else (*args, where)
        if not (out is None or type(out) is np.ndarray) or len(args) != len(self.parameters):
            return None
        key = [where is None, None if out is None else (out.dtype, out.shape, out.strides)]
        for x in values:
            if type(x) is np.ndarray:
                key.append((x.dtype, x.shape, x.strides))
            elif type(x) in NUMBERS:
                key.append(type(x))
            else:
                return None
        return tuple(key)

    def again(self, now, layout, args, out, where):
        """The result of a call whose layout has been done before; None where it asks for the checks once more."""
        shape, result, strides, dtypes = now.layouts[layout]
        if now.memory is None:
            self.room = import_module(FUSED.on(keys.CPU, self.__name__).fast.partition(":")[0])
            if self.room.at_first():
                return None
            now.memory = self.room.Memory()
            now.recall = self.room.recaller(now.memory)
        values = args if where is None else (*args, where)
        values = [x if type(x) is np.ndarray else np.asarray(x, dtype) for x, dtype in zip(values, dtypes)]
        plan = now.function, shape, result, strides
        return self.room.at_once(now.memory, out, values, where is not None, plan)

    def operand(self, key, value, or_number=False) -> Operand:
        adapter = arrays.adapter_of(type(value))
        if adapter is None:
            wanted = "an array or a number" if or_number else "an array"
            raise errors.ArgumentError(f"{self.__name__}: {key} must be {wanted}, not {errors.describe(value)}")
        try:
            return Operand(key, value, adapter, adapter.device(value), adapter.spec(value))
        except TypeError as error:
            raise errors.ArgumentError(f"{self.__name__}: {key} is {error}") from None

    def lead(self, inputs, outs) -> Operand:
        """The first array that is bound to a device, which must be every other's; 0-d CPU arrays may join any."""
        bound = [x for x in inputs if x.spec.shape != () or x.device.key != keys.CPU]
        lead = (bound or inputs or [self.operand("", np.empty(()))])[0]
        if any(x.device != lead.device for x in bound + outs):
            places = ", ".join(f"{x.name} on {x.device}" for x in inputs + outs)
            raise errors.DeviceError(f"{self.__name__}: all arrays must be on one device: {places}")
        if lead.device.key != keys.META:
            FUSED.on(lead.device.key, self.__name__)
        return lead

    def shape(self, inputs):
        try:
            return broadcast_shapes(*(tuple(x.spec.shape) for x in inputs))
        except ValueError as error:
            raise ValueError(f"{self.__name__}: {error}") from None

    def arguments(self, values, inputs):
        """The dtypes that the function is called with: arrays' own, and those in which Python numbers join them."""
        dtypes = {key: np.dtype(x.spec.dtype) for key, x in inputs.items()}
        mask = np.dtype(dtypes.pop(MASK, type(values.get(MASK, True))))
        for key, dtype in dtypes.items():
            if not known(dtype):
                raise TypeError(f"{self.__name__}: no loop for dtype {dtype!r} of {key}")
        if mask != np.bool_:
            raise TypeError(f"{self.__name__}: where is {mask}; it should be bool")
        names = [p.name for p in self.parameters]
        return tuple(dtypes[n] if n in dtypes else np.result_type(*dtypes.values(), values[n]) for n in names)

    def adopted(self, now, dtypes):
        """The function ready to be compiled and the dtypes of the results, given or inferred; a TypeError where it
        does not compile."""
        try:
            adopted = import_module(ADOPT).adopt(now.function, dtypes)
        except Exception as error:
            of_arrays = now.frozen.of_arrays()
            if not of_arrays:
                raise
            raise TypeError(
                f"{self.__name__} does not compile: it reads {', '.join(of_arrays)} of nbkernels, for arrays: inside a "
                "function of elements use element-wise operations, math and numpy"
            ) from error
        found = adopted.results
        if self.dtypes and len(self.dtypes) != len(found):
            raise TypeError(f"{self.__name__}: returns {len(found)} results, and {len(self.dtypes)} dtypes were given")
        return adopted, self.dtypes or found

    def check(self, outs, shape, results):
        """Raise where a result cannot be written into its out."""
        name = self.__name__
        if len(outs) != len(results):
            raise errors.OutError(f"{name}: out should be a tuple of {len(results)} arrays, not {len(outs)}")
        for out, dtype in zip(outs, results):
            if not np.can_cast(dtype, out.spec.dtype, "same_kind"):
                raise errors.OutDtypeError(
                    f"{name}: the result is {dtype}, which cannot be cast to out: {out.spec.dtype}"
                )
            if tuple(out.spec.shape) != shape:
                raise errors.OutError(f"{name}: the result has shape {shape} and out has {tuple(out.spec.shape)}")
            check_writable(name, out)
        if len(outs) > 1 and len({id(out.value) for out in outs}) < len(outs):
            raise errors.OutError(f"{name}: one array is out for two results")

    def allocate(self, lead, shape, results, inputs):
        """Arrays for the results, in the order of the first full-size input."""
        layouts = [(tuple(x.spec.shape), tuple(x.spec.strides)) for x in inputs.values()]
        outs = []
        for dtype in results:
            strides = output_strides(shape, *map(tuple, zip(*layouts)), dtype.itemsize) if layouts else ()
            empty = lead.adapter.empty(lead.value, shape, dtype, strides)
            outs.append(Operand("out", empty, lead.adapter, lead.device, None))
        return outs

    @staticmethod
    def view(lead, out, operand, value, dtype):
        """An argument as the kernel gets it, on the lead's device."""
        if operand is None:
            return np.asarray(value, dtype)
        return view(operand, lead, out.adapter, out.value)
