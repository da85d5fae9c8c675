"""Fast paths: what a public function calls at once, found by the types of its arrays at their first call."""

from . import arrays, keys
from .table import resolve


def key_of(types):
    """What `entries` knows these types by: where all are of one type it is that, 30 ns less to make and to hash."""
    return types[0] if len(set(types)) == 1 else types


def enrol(op, types, args=()):
    """The fast path for these types where there is one that was not tried yet; later calls find it in `entries`.

    `args` are the call's: where tensors lie on a CUDA device, what those on the CPU need is left to the first of these.
    """
    key, on_cuda = key_of(types), any(getattr(x, "is_cuda", False) is True for x in args)
    if key in op.entries and (on_cuda or not getattr(op.entries[key], "partial", False)):
        return None
    again, name = replay(op, types)
    if again is not None and name != "torch":
        op.worded[key], op.entries[key] = again.with_keywords, again
        return again
    _, row, reason = op.table.row(keys.CPU)
    composed = reason in keys.COMPOSITES and op.library.overriding  # it stands for the parts as they were declared
    if row is None or row.fast is None or composed:
        row = None
    partial = again is not None and on_cuda and row is not None
    row = None if partial else row
    if row is None and again is None:
        return None
    exact, lenders = 0, set()
    for i, cls in zip(op.keyed, types, strict=True):
        adapter = arrays.adapter_of(cls)
        if adapter is not None and (adapter.exact(cls) or (op.elementwise and adapter.scalar)):
            exact += 1
        elif adapter is not None and adapter.lends(cls):
            lenders.add(adapter.name)
        elif cls not in op.weak and not (cls is type(None) and op.arguments[i].type.optional):
            return None
    if not exact and not lenders:
        return None
    fast = of_numpy = (not lenders and op.library.first and resolve(op.library.first)(op)) or (row and row.load_fast())
    if lenders:
        fast = lent(op, lenders, exact, types, of_numpy, again)
        if fast is None:
            return None
    if op.fields is not None:
        fast = wrapped(op, fast)
    if partial:
        fast.partial = True
    op.worded[key] = getattr(fast, "with_keywords", None)
    op.entries[key] = (hasattr(fast, "quick") and fast.quick()) or fast
    if direct := getattr(of_numpy, "direct", None):
        entry, of_numpy.ready = direct(), op.forget
        plain = fast is of_numpy and types[0] not in op.weak and arrays.adapter_of(types[0]).exact(types[0])
        if entry is not None and plain:
            (op.delegates_to or op).go_on, op.direct[types[0]] = fast.go_on, entry
    if row is not None and op.table.row(keys.CPU).row is not row:  # replaced meanwhile, by another thread
        op.forget()
    return fast


def wrote(op, types, args, taken, out):
    """Whether a fast path for NumPy's arrays has written a view of an out that lends NumPy its memory."""
    adapter = arrays.adapter_of(type(out))
    if not (op.structured and adapter and adapter.name == "NumPy" and adapter.lends(type(out))):
        return False
    fast = (op.entries if len(taken) < len(args) or not op.rare else op.worded).get(key_of(types))
    return fast is not None and fast(*taken, adapter.view(out)) is not None


def lent(op, names, exact, types, fast, again):
    """The fast path for arrays of the one library in `names`, which runs `fast` on their NumPy views and `again` on
    arrays of a CUDA device; None where there are arrays of several libraries, or no such path."""
    name = names.pop()
    maker, joined = op.library.lenders.get(name), name in ("NumPy", "traced", "packed") or not exact
    return resolve(maker)(op, types, fast, again) if maker and not names and joined else None


def replay(op, types):
    """(the fast path of a library of arrays that repeats what earlier calls launched, or None; the library's name)"""
    adapters = {arrays.adapter_of(cls) for cls in types if cls not in op.weak and cls is not type(None)}
    adapter = adapters.pop() if len(adapters) == 1 and None not in adapters else None
    if adapter is None or not op.structured or op.library.overriding or not adapter.repeats():
        return None, None
    name, maker = adapter.name, op.library.replays.get(adapter.name)
    return (maker and resolve(maker)(op, name, types)), name


def wrapped(op, fast):
    """A fast path whose results get the names of the returns."""

    def named(*args):
        results = fast(*args)
        return None if results is None else op.fields(*results)

    return named
