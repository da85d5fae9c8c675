"""The end of a general call: the meta function gives the result's spec, `out` is checked or made, the kernel runs."""

from contextlib import contextmanager

from . import arrays, keys, layout
from .driver import DeviceView, join
from .errors import ArgumentError, OutDtypeError, OutError, ResultError, describe, unsuitable
from .operands import Operands, check_writable, each


def run_as_is(op, name, row, slots, args):
    """A call of a kernel that takes the arguments as they came; what it writes is what comes out."""
    for i in op.written:
        for operand in slots[i] if isinstance(slots[i], Operands) else (slots[i],):
            if operand is not None:
                check_writable(name, operand)
    kernel, values = row.row.load(), each(slots, lambda operand: operand.value)
    made = kernel(op, tuple(values), None) if row.reason == "fallback" else kernel(*values)
    given = [i if i in op.written else None for i in op.aliases()]
    if None in given and len(given) > 1 and not (isinstance(made, tuple | list) and len(made) == len(given)):
        what = f"{len(made)} results" if isinstance(made, tuple | list) else describe(made)
        raise ResultError(f"{name}: {row.row.kernel_name} returned {what}, and its op returns {len(given)}")
    for i in op.written:
        each([slots[i]], lambda operand: operand.adapter.written(operand.value))
    made = made if None in given and len(given) > 1 else [made] * len(given)
    results = tuple(part if i is None else args[i] for i, part in zip(given, made, strict=True))
    if len(results) < 2:
        return results[0] if results else None
    return op.fields(*results) if op.fields else results


def foreseen(op, name, specs):
    """What the meta function says of the result, where that is a shape, a dtype of data and strides or None."""
    result = op.structured(*specs)
    shape, dtype, strides = (getattr(result, each, None) for each in ("shape", "dtype", "strides"))
    sizes = isinstance(shape, tuple | list) and all(hasattr(type(size), "__index__") and size >= 0 for size in shape)
    what = describe(result)
    if dtype is not None and sizes:
        if not getattr(dtype, "hasobject", False) and (strides is None or len(strides) == len(shape)):
            return result
        what = f"shape {shape}, dtype {dtype} and strides {strides}"
    elif shape is not None:
        what = f"shape {shape!r} and dtype {dtype!r}"
    meta = getattr(op.structured, "__name__", describe(op.structured))
    raise ResultError(f"{name}: its meta function {meta} returned {what}; it should return what nbkernels.meta(shape, "
                      "dtype) makes: sizes that are counts, a dtype that is no object, as many strides")  # fmt: skip


def run(op, name, row, slots, lead, target, in_place):
    """A structured call: meta says what comes out, the kernel writes it."""
    result = foreseen(op, name, each(slots, lambda operand: operand.spec))
    if target is not None:
        check_target(op, name, target, result, in_place)
    elif op.aliased is not None:
        alike = slots[op.aliased]
        if alike.spec.shape == result.shape and alike.spec.dtype == result.dtype:
            return alike.value
    if row.reason == "fallback":
        return fall_back(op, name, row, slots, lead, target, result)
    if target is None:
        strides = result.strides or layout.c_strides(result.shape, result.dtype.itemsize)
        out, adapter = lead.adapter.empty(lead.value, result.shape, result.dtype, strides), lead.adapter
    else:
        out, adapter = target.value, target.adapter
    if 0 not in result.shape and row.reason != "structured":
        taken = [slots[i] for i in op.kernel_arguments]
        if row.reason in keys.COMPOSITES:  # its parts are called with the arrays themselves: on their device
            launch(op, name, row, out, *each(taken, lambda operand: operand.value))
        else:
            written = adapter.view(out)
            read = each(taken, lambda x: view(x, lead, adapter, out))
            with ordered(written, read):
                launch(op, name, row, written, *read)
    if target is None:
        return adapter.result(out, lead.value)
    adapter.written(out)
    return out


def fall_back(op, name, row, slots, lead, target, result):
    """A structured call of a fallback, which writes `target`, or makes what meta says."""
    out = None if target is None else target.value
    made = row.row.load()(op, tuple(each(slots, lambda operand: operand.value)), out)
    if target is not None:
        return out
    adapter = arrays.adapter_for(made)
    spec = adapter and adapter.spec(made)
    told = spec and (tuple(spec.shape), spec.dtype, adapter.device(made))
    if told != (tuple(result.shape), result.dtype, lead.device):
        told = "{}, {} on {}".format(*told) if told else describe(made)
        wanted = f"{result.shape}, {result.dtype} on {lead.device}"
        raise ResultError(f"{name}: the fallback {row.row.kernel_name} returned {told}; the result is {wanted}")
    return made


def launch(op, name, row, *args):
    """Call a kernel, which knows nothing of the op that it runs for: what it says of an argument gets its name."""
    try:
        row.row.load()(*args)
    except ValueError as error:
        raise unsuitable(name, error, op.names) from None


@contextmanager
def ordered(written, read):
    """Kernels are launched on the stream of what they write: after what other streams have done with what they read,
    and before what those do next."""
    own, streams = getattr(written, "stream", None) or 0, ()
    if isinstance(written, DeviceView):
        streams = {x.stream for x in read if isinstance(x, DeviceView)} - {None, own}
    for stream in streams:
        join(stream, own)
    yield
    for stream in streams:
        join(own, stream)


def view(operand, lead, writer, out):
    """What a kernel reads, on the device of out, of the library `writer`."""
    view = operand.adapter.view(operand.value)
    if operand.adapter.foreign and (tuple(view.shape), view.dtype) != (operand.spec.shape, operand.spec.dtype):
        raise ArgumentError(f"{operand.name} was {operand.spec} and is {view.dtype} {view.shape} at the second look")
    return view if operand.device == lead.device else writer.view(writer.upload(view, out))


def check_target(op, name, target, result, in_place):
    """Raise where the result cannot be written into `target`: dtype, shape, read-only, overlap with itself."""
    spec, word = target.spec, target.name
    if spec.dtype != result.dtype and not (op.casts and op.casts(result, spec.dtype)):
        casting = getattr(result, "casting", "same_kind")
        how = f"cannot be cast ({casting}) to" if op.casts else "has another dtype than"
        raise OutDtypeError(f"{name}: the result is {result.dtype}, which {how} {word}: {spec.dtype}")
    if tuple(spec.shape) != tuple(result.shape):
        why = "the in-place form never expands self" if in_place else "out is never resized or broadcast into"
        raise OutError(f"{name}: the result has shape {result.shape} and {word} has {spec.shape}; {why}")
    check_writable(name, target)
