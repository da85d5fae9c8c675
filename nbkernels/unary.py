"""Element-wise operations of one: shape, dtype and memory order of the result. What they compute is said here, too.

Their rules are those of operations of two (binary.py) whose operands are one array.
"""

from __future__ import annotations

from .binary import binary

# name: (formula, note, an example's argument, its result)
DOCS = {
    "abs": (
        "|self|",
        "Of complex numbers the size, a float. The smallest integer has no opposite.",
        "[-1.5, 2.0]",
        "array([1.5, 2. ])",
    ),
    "negative": ("-self", "No bools; unsigned integers wrap.", "[-1.5, 2.0]", "array([ 1.5, -2. ])"),
    "positive": ("self, in a new array", "No bools.", "[-1.5, 2.0]", "array([-1.5,  2. ])"),
    "sign": (
        "-1, 0 or 1",
        "NaN of NaN; of complex numbers self / |self|. No bools.",
        "[-1.5, 0.0]",
        "array([-1.,  0.])",
    ),
    "signbit": (
        "whether the sign is minus, of zeros and NaN too",
        "Bools, of floats; integers become some.",
        "[-0.0, 2.0]",
        "array([ True, False])",
    ),
    "conj": ("the conjugate", "Of what is not complex, self in a new array.", "[1 + 2j]", "array([1.-2.j])"),
    "real": ("the real part, in a new array", "", "[1 + 2j]", "array([1.])"),
    "imag": ("the imaginary part, in a new array", "0 of what is not complex.", "[1 + 2j]", "array([2.])"),
    "square": ("self * self", "", "[-1.5, 2.0]", "array([2.25, 4.  ])"),
    "reciprocal": (
        "1 / self",
        "Integers: cut to whole numbers; of 0 with a RuntimeWarning.",
        "[4.0, 0.5]",
        "array([0.25, 2.  ])",
    ),
    "sqrt": ("the square root", "{floats}", "[4.0, 2.25]", "array([2. , 1.5])"),
    "cbrt": ("the cube root, of self's sign", "{real}", "[-8.0, 27.0]", "array([-2.,  3.])"),
    "exp": ("e**self", "{floats}", "[0.0, 1.0]", "array([1.        , 2.71828183])"),
    "exp2": ("2**self", "{floats}", "[3.0, -1.0]", "array([8. , 0.5])"),
    "expm1": ("e**self - 1, with its digits near 0", "{floats}", "[0.0, 1e-20]", "array([0.e+00, 1.e-20])"),
    "log": ("the natural logarithm", "{floats}", "[1.0, 0.5]", "array([ 0.        , -0.69314718])"),
    "log2": ("the logarithm to base 2", "{floats}", "[8.0, 0.5]", "array([ 3., -1.])"),
    "log10": ("the logarithm to base 10", "{floats}", "[1000.0, 0.1]", "array([ 3., -1.])"),
    "log1p": ("log(1 + self), with its digits near 0", "{floats}", "[0.0, 1e-20]", "array([0.e+00, 1.e-20])"),
    "sin": ("the sine", "{floats}", "[0.0, 0.5]", "array([0.        , 0.47942554])"),
    "cos": ("the cosine", "{floats}", "[0.0, 0.5]", "array([1.        , 0.87758256])"),
    "tan": ("the tangent", "{floats}", "[0.0, 0.5]", "array([0.        , 0.54630249])"),
    "asin": ("the angle of this sine, from -pi/2 to pi/2", "{floats}", "[0.0, 1.0]", "array([0.        , 1.57079633])"),
    "acos": ("the angle of this cosine, from 0 to pi", "{floats}", "[1.0, 0.0]", "array([0.        , 1.57079633])"),
    "atan": (
        "the angle of this tangent, from -pi/2 to pi/2",
        "{floats}",
        "[0.0, 1.0]",
        "array([0.        , 0.78539816])",
    ),
    "sinh": ("the hyperbolic sine", "{floats}", "[0.0, 1.0]", "array([0.        , 1.17520119])"),
    "cosh": ("the hyperbolic cosine", "{floats}", "[0.0, 1.0]", "array([1.        , 1.54308063])"),
    "tanh": ("the hyperbolic tangent", "{floats}", "[0.0, 1.0]", "array([0.        , 0.76159416])"),
    "asinh": ("the number of this sinh", "{floats}", "[0.0, 1.0]", "array([0.        , 0.88137359])"),
    "acosh": ("the number of this cosh", "{floats}", "[1.0, 2.0]", "array([0.       , 1.3169579])"),
    "atanh": ("the number of this tanh", "{floats}", "[0.0, 0.5]", "array([0.        , 0.54930614])"),
    "floor": ("the largest whole number up to self", "{whole}", "[1.5, -1.5]", "array([ 1., -2.])"),
    "ceil": ("the smallest whole number from self on", "{whole}", "[1.5, -1.5]", "array([ 2., -1.])"),
    "trunc": ("the whole part", "{whole}", "[1.5, -1.5]", "array([ 1., -1.])"),
    "round": (
        "the nearest multiple of 10**-decimals, of two the even one: whole numbers by default",
        "NumPy's round: integers stay as they are where decimals is not negative; of complex numbers both parts. To\n"
        "decimals it is rint(self * 10**decimals) / 10**decimals and, where decimals is negative,\n"
        "rint(self / 10**-decimals) * 10**-decimals, each step rounded to the dtype; of integers in float64.",
        "[1.5, 2.5]",
        "array([2., 2.])",
    ),
    "isnan": (
        "whether it is NaN",
        "Bools; of complex numbers, whether a part is.",
        "[np.nan, np.inf, 1.0]",
        "array([ True, False, False])",
    ),
    "isinf": (
        "whether it is infinite",
        "Bools; of complex numbers, whether a part is.",
        "[np.nan, np.inf, 1.0]",
        "array([False,  True, False])",
    ),
    "isfinite": (
        "whether it is a number and finite",
        "Bools; of complex numbers, whether both parts are.",
        "[np.nan, np.inf, 1.0]",
        "array([False, False,  True])",
    ),
    "logical_not": ("whether it is 0", "Bools.", "[0, 2]", "array([ True, False])"),
    "bitwise_invert": ("~self", "Integers and bools.", "[0, 2]", "array([-1, -3])"),
}
NOTES = {
    "floats": "Floats and complex numbers, with C99's special values and branch cuts; integers become floats.",
    "real": "Floats; integers become some.",
    "whole": "Integers and bools stay as they are; no complex numbers.",
}

DOCSTRING = """\
out = {formula}

{note}
In NumPy 2's dtypes, of any integers, floats (bfloat16 too), complex numbers and bools where the operation is defined.

out      of any dtype that the result may be cast to
where    bools; where False, out keeps what it had (and a new result has anything)
casting  "no", "equiv", "safe", "same_kind" (the default) or "unsafe": what `dtype` and `out` may ask for
order    "K" (the default: as self lies), "C", "F" or "A", of a new result
dtype    what to compute in, NumPy's way

Raises TypeError where the dtype has no such operation. Source: NumPy's {numpy}, whose RuntimeWarnings for floats are
not given.

>>> import numpy as np, nbkernels
>>> nbkernels.{op}(np.array({example}))
{result}
"""


def rule(op):
    """The meta function of an operation: (self, where, casting, order, dtype) -> Result."""

    if op == "round":

        def meta(self, decimals=0, where=None, casting=None, order=None, dtype=None):
            result = binary(op, self, self, where, casting, order, dtype)
            if decimals and self.dtype.kind == "b":
                raise TypeError(f"round: self is bool, and decimals={decimals} asks for numbers")
            return result
    else:

        def meta(self, where=None, casting=None, order=None, dtype=None):
            return binary(op, self, self, where, casting, order, dtype)

    formula, note, example, result = DOCS[op]
    text = dict(formula=formula, note=note.format(**NOTES), example=example, result=result)
    meta.__name__ = meta.__qualname__ = op
    doc = DOCSTRING.format(op=op, numpy=op, **text)
    meta.__doc__ = doc if note else doc.replace("\n\n\nIn", "\n\nIn")
    return meta
