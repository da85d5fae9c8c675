"""The exceptions of the dispatcher. Each message says what was given, and what to do about it."""


class SchemaError(ValueError):
    """A schema that does not follow the language; shows the text with a mark under the column (counted from 1)."""

    def __init__(self, message, text, column):
        shown = "".join(each if each.isprintable() else " " for each in text)
        super().__init__(f"{message}\n  {shown}\n  {' ' * (column - 1)}^ column {column}")
        self.text, self.column = text, column


class RegistrationError(ValueError):
    """A declaration or a kernel registration that cannot stand."""


class MissingKernelError(NotImplementedError):
    """The op has no kernel for the device that the arrays are on."""


class ArgumentError(TypeError):
    """An argument of a type that the schema does not allow."""


class ComplianceError(AttributeError, TypeError):
    """A composite that does what composites must not; see compliance.py."""


class DeviceError(ValueError):
    """Arrays on more than one device."""


class OutError(ValueError):
    """An `out` (or the `self` of an in-place form) that the result cannot be written into."""


class InferenceError(OutError, RuntimeError):
    """A torch tensor of inference mode that is written outside it: torch's own error is a RuntimeError."""


class UnsuitableError(ValueError):
    """An argument, as `name=value: why`, that the kernel for the arrays' device cannot use."""

    def __init__(self, op, why):
        super().__init__(f"{op}: {why}")
        self.why = why


def unsuitable(op, error, names):
    """What a kernel, which knows nothing of the op that it runs for, says of one of its arguments, under the op's name;
    any other ValueError as it is."""
    why = getattr(error, "why", str(error))
    return UnsuitableError(op, why) if why.partition("=")[0] in names else error


class ResultError(TypeError):
    """A kernel that returned what its op does not return."""


class OutDtypeError(OutError, TypeError):
    """An `out` of a dtype that the result has not, and is not cast to."""


def describe(value):
    """A short name for a value that was given: `None`, `a list`, `an object array` ..."""
    if value is None:
        return "None"
    name = type(value).__qualname__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def meant(word, choices):
    """`; did you mean 'x'?`, or nothing where no choice is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, choices, 1, cutoff=0.75)  # at 0.6 softmax is near to fmax, linalg to linear
    return f"; did you mean {near[0]!r}?" if near else ""


def unexpected(name, unknown, known):
    """The error of a call with keywords that it does not have, in Python's words. From 3.13 on Python hints, too."""
    word = next(iter(unknown))
    return TypeError(f"{name}() got an unexpected keyword argument {word!r}{meant(word, known)}")


def crowded(name, known):
    """The error of a call with more positional arguments than there are."""
    placed = [p for p in known.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.name for p in known.values() if p.kind is p.KEYWORD_ONLY]
    least, most = sum(p.default is p.empty for p in placed), len(placed)
    count = f"{least} to {most}" if least < most else f"{most}"
    return TypeError(f"{name}() takes {count} positional argument{'s' * (most != 1)}; by name: {', '.join(named)}")


def suggestion(word, choices):
    """`; did you mean 'x'?`, or the choices where none is near."""
    return meant(word, choices) or f"; it is one of {', '.join(choices)}"
