"""The element-wise operations, a row each: all that the library knows of one beside its scalar function and its slope.

Whatever lists such operations reads these rows: docstrings, ops.py's table, gates, folds, first calls, NumPy's loops,
the sets of warm-up and bench, pictures, tests. Words and numbers only, which every room may import. See
CONTRIBUTING.md, "Add an operation".
"""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

# Cost classes of an element. LIGHT: bound by memory, a few instructions that LLVM vectorises (it warns where it is told
# to and cannot). COSTLY: 0.5 to 3 ns, where an addition in L2 takes 0.1. CHAINED: likewise, by steps on floats
# that wait for each other.
LIGHT, MIDDLING, COSTLY, CHAINED = "light", "middling", "costly", "chained"
# Kinds of slope. BY_NAME: a formula of gradients.py, or functions of slopes.py, with the operation's name. FLAT: the
# operation is constant but for jumps. NONE: its gradient is not known.
BY_NAME, FLAT, NONE = "by name", "flat", "none"
# Folds of an associative operation on floats: in pairs, for the order shows in the bits, or in any order.
PAIRWISE, ANY_ORDER = "pairwise", "any order"
# Groups of operations that are treated alike.
COMPARISON, EXTREME, DIVISOR, PART, TEST = "comparison", "extreme", "divisor", "part", "test"
# Flags of operations on floats: none is raised, whatever the element; others than NumPy's loops raise, for -inf and for
# quotients that leave a rest (cpu/numpy_loops/elementwise.py).
QUIET, OF_INFINITY, OF_RESTS = "quiet", "of -inf", "of rests"
# Notes that several operations share.
REALS = "Floats; integers become some."
FLOATS = "Floats and complex numbers, with C99's special values and branch cuts; integers become floats."
KEPT = "Integers and bools stay as they are; no complex numbers."


class Operation(NamedTuple):
    """A row. The first four make its docstring: what it computes, what is special about it, an example, its result."""

    formula: str
    note: str
    example: str
    result: str
    group: str = ""
    slope: str = BY_NAME
    cost: str = MIDDLING
    ulp: int = 0  # of two: how far from NumPy's it may be, in units of the last place; by docs/elementwise.md
    fold: str = ""  # how it is folded, where it is associative
    neutral: tuple = (0, 0)  # what leaves floats, and whole numbers, as they are: infinite is the dtype's largest
    signless: bool = False  # no element is neutral to a negative one: folded with nothing that would be its size
    scaled: bool = False  # takes alpha
    takes: str = ""  # arguments beside self
    linear: str | None = None  # the arguments in whose product it is linear; "" for a sum of them
    exact: str = ""  # kinds of dtypes in which it has one result, to the bit: it is exact, or rounded once
    ufunc: str | None = ""  # NumPy's, of another name; None for no ufunc
    faults: str = ""
    unlike: str = ""  # dtypes whose flags are not NumPy's for some elements (numpy_api/test_use_in_numpy_values.py)
    alike: bool = False  # of one: its loop of float16 has NumPy's bits and flags for each of the 65,536, by `as_ours`
    everyday: bool = False  # compiled by `warmup`
    benched: bool = False
    also: str = ""  # names that NumPy or torch has for it


BINARY = {
    "add": Operation("self + alpha * other",
        "Integers wrap; of bools it is \"or\". `alpha` is a number of the result's kind. Source: ATen's add.",
        "np.array([[1.0], [2.0]]), np.array([10.0, 20.0]), alpha=0.5", "array([[ 6., 11.],\n       [ 7., 12.]])",
        cost=LIGHT, fold=PAIRWISE, neutral=(-0.0, 0), scaled=True, linear="", exact="biufc", everyday=True,
        benched=True),
    "subtract": Operation("self - alpha * other", "Integers wrap; not defined for two bools. Source: ATen's sub.",
        "np.array([5, 6]), 1, alpha=2", "array([3, 4])", cost=LIGHT, scaled=True, linear="", exact="biufc",
        everyday=True, also="sub"),
    "multiply": Operation("self * other", 'Integers wrap; of bools it is "and".',
        "np.array([1, 2, 3], dtype=np.int8), 100", "array([100, -56,  44], dtype=int8)", cost=LIGHT, fold=PAIRWISE,
        neutral=(1, 1), linear="self other", exact="biuf", unlike="complex64 complex128", everyday=True, also="mul"),
    "divide": Operation("self / other", "Of integers and bools it is float64.", "np.array([1, 2]), 4",
        "array([0.25, 0.5 ])", cost=LIGHT, exact="biuf", unlike="complex64 complex128", everyday=True, benched=True,
        also="div true_divide"),
    "floor_divide": Operation("floor(self / other)",
        "Of integers x // 0 is 0, with NumPy's RuntimeWarning; the smallest integer // -1 is itself, with another.",
        "np.array([7, -7]), 2", "array([ 3, -4])", slope=FLAT, cost=COSTLY, faults=OF_RESTS),
    "remainder": Operation("self - floor(self / other) * other",
        "It has the sign of other, as Python's %. Of integers x % 0 is 0, with NumPy's RuntimeWarning.",
        "np.array([7, -7]), 3", "array([1, 2])", cost=COSTLY, faults=OF_RESTS, unlike="float64", also="mod"),
    "fmod": Operation("self - trunc(self / other) * other",
        "It has the sign of self, as C's. Of integers fmod(x, 0) is 0, with NumPy's RuntimeWarning.",
        "np.array([7, -7]), 3", "array([ 1, -1])", cost=COSTLY, faults=OF_RESTS),
    "pow": Operation("self ** other",
        "Integers wrap; a negative power of theirs is a ValueError, on CUDA its whole part.",
        "np.array([1, 2, 3]), 2", "array([1, 4, 9])", cost=CHAINED, ulp=4, unlike="float16 complex64 complex128",
        everyday=True, benched=True, also="power"),
    "float_power": Operation("self ** other", "In float64 or complex128.", "np.array([1, 2]), -1",
        "array([1. , 0.5])", cost=CHAINED, ulp=4, unlike="complex128"),
    "maximum": Operation("the larger of self and other, NaN where either is NaN; of zeros the positive one",
        'Of bools it is "or".', "np.array([-1.0, 2.0]), 0", "array([0., 2.])", group=EXTREME, cost=LIGHT,
        fold=ANY_ORDER, neutral=(-inf, -inf), exact="biu", faults=QUIET, everyday=True, benched=True),
    "minimum": Operation("the smaller of self and other, NaN where either is NaN; of zeros the negative one",
        'Of bools it is "and".', "np.array([[1, 5], [7, 2]]), np.array([3, 4])", "array([[1, 4],\n       [3, 2]])",
        group=EXTREME, cost=LIGHT, fold=ANY_ORDER, neutral=(inf, inf), exact="biu", faults=QUIET, everyday=True),
    "fmax": Operation("the larger of self and other, the number where one is NaN; of zeros the positive one",
        'Of bools it is "or".', "np.array([np.nan, 2.0]), 0", "array([0., 2.])", group=EXTREME, fold=ANY_ORDER,
        neutral=(nan, -inf), faults=QUIET),
    "fmin": Operation("the smaller of self and other, the number where one is NaN; of zeros the negative one",
        'Of bools it is "and".', "np.array([np.nan, 2.0]), 0", "array([0., 0.])", group=EXTREME, fold=ANY_ORDER,
        neutral=(nan, inf), faults=QUIET),
    "atan2": Operation("the angle of the point (other, self), from -pi to pi", REALS, "np.array([0.0, 1.0]), 1.0",
        "array([0.        , 0.78539816])", cost=COSTLY, ulp=4, unlike="float32 float64", benched=True,
        also="arctan2"),
    "hypot": Operation("sqrt(self**2 + other**2), without overflow on the way", REALS,
        "np.array([3.0, 6.0]), np.array([4.0, 8.0])", "array([ 5., 10.])", cost=COSTLY, ulp=4, fold=PAIRWISE,
        signless=True, unlike="float64", benched=True),
    "copysign": Operation("|self| with the sign of other", REALS, "np.array([1.0, 2.0]), np.array([-1.0, 0.0])",
        "array([-1.,  2.])", faults=QUIET),
    "nextafter": Operation("the next float from self towards other; other where they are equal", REALS,
        "np.array([1.0]), 2.0", "array([1.])", slope=NONE, unlike="float16 float32 float64"),
    "logaddexp": Operation("log(exp(self) + exp(other)), without overflow on the way", REALS,
        "np.array([1000.0, 0.0]), 1000.0", "array([1000.69314718, 1000.        ])", cost=CHAINED, ulp=4,
        fold=PAIRWISE, neutral=(-inf, 0), unlike="float16 float32 float64", benched=True),
    "logaddexp2": Operation("log2(2**self + 2**other), without overflow on the way", REALS,
        "np.array([1000.0, 0.0]), 1000.0", "array([1001., 1000.])", cost=CHAINED, ulp=4, fold=PAIRWISE,
        neutral=(-inf, 0), unlike="float16 float32 float64"),
    "heaviside": Operation("0 where self < 0, other where it is 0, 1 where it is larger", REALS,
        "np.array([-2.0, 0.0, 2.0]), 0.5", "array([0. , 0.5, 1. ])", slope=FLAT, faults=QUIET),
    "ldexp": Operation("self * 2**other", "other has integers.", "np.array([1.0, 3.0]), np.array([2, -1])",
        "array([4. , 1.5])"),
    "gcd": Operation("the greatest common divisor", "Integers.", "np.array([12, 7]), 8", "array([4, 1])",
        group=DIVISOR, slope=FLAT, cost=COSTLY, fold=ANY_ORDER, signless=True),
    "lcm": Operation("the least common multiple", "Integers; wraps.", "np.array([12, 7]), 8", "array([24, 56])",
        group=DIVISOR, slope=FLAT, cost=COSTLY),
    "equal": Operation("self == other", "Bools.", "np.array([1, 2]), 2", "array([False,  True])", group=COMPARISON,
        slope=FLAT, cost=LIGHT, exact="biufc", faults=QUIET, everyday=True),
    "not_equal": Operation("self != other", "Bools.", "np.array([1, 2]), 2", "array([ True, False])",
        group=COMPARISON, slope=FLAT, cost=LIGHT, exact="biufc", faults=QUIET, everyday=True),
    "less": Operation("self < other", "Bools; integers are compared exactly.", "np.array([1, 2]), 2",
        "array([ True, False])", group=COMPARISON, slope=FLAT, cost=LIGHT, exact="biufc", faults=QUIET,
        unlike="complex64 complex128", everyday=True, benched=True),
    "less_equal": Operation("self <= other", "Bools.", "np.array([1, 2]), 1", "array([ True, False])",
        group=COMPARISON, slope=FLAT, cost=LIGHT, exact="biufc", faults=QUIET, unlike="complex64 complex128",
        everyday=True),
    "greater": Operation("self > other", "Bools.", "np.array([1, 2]), 1", "array([False,  True])", group=COMPARISON,
        slope=FLAT, cost=LIGHT, exact="biufc", faults=QUIET, unlike="complex64 complex128", everyday=True),
    "greater_equal": Operation("self >= other", "Bools.", "np.array([1, 2]), 2", "array([False,  True])",
        group=COMPARISON, slope=FLAT, cost=LIGHT, exact="biufc", faults=QUIET, unlike="complex64 complex128",
        everyday=True),
    "logical_and": Operation("self != 0 and other != 0", "Bools.", "np.array([0, 2]), 3", "array([False,  True])",
        slope=FLAT, fold=ANY_ORDER, neutral=(1, 1), exact="biufc", faults=QUIET),
    "logical_or": Operation("self != 0 or other != 0", "Bools.", "np.array([0, 2]), 0", "array([False,  True])",
        slope=FLAT, fold=ANY_ORDER, exact="biufc", faults=QUIET),
    "logical_xor": Operation("exactly one of self and other is not 0", "Bools.", "np.array([0, 2]), 1",
        "array([ True, False])", slope=FLAT, fold=ANY_ORDER, exact="biufc", faults=QUIET),
    "bitwise_and": Operation("self & other", "Integers and bools.", "np.array([12, 5]), 6", "array([4, 4])",
        slope=FLAT, cost=LIGHT, fold=ANY_ORDER, neutral=(0, -1), exact="biu"),
    "bitwise_or": Operation("self | other", "Integers and bools.", "np.array([12, 5]), 6", "array([14,  7])",
        slope=FLAT, cost=LIGHT, fold=ANY_ORDER, exact="biu"),
    "bitwise_xor": Operation("self ^ other", "Integers and bools.", "np.array([12, 5]), 6", "array([10,  3])",
        slope=FLAT, cost=LIGHT, fold=ANY_ORDER, exact="biu"),
    "bitwise_left_shift": Operation("self << other",
        "Integers; 0 where other is negative or not less than the bits of self.", "np.array([1, 3]), 2",
        "array([ 4, 12])", slope=FLAT, cost=LIGHT, also="left_shift"),
    "bitwise_right_shift": Operation("self >> other",
        "Integers; the sign, 0 or -1, where other is negative or not less than the bits of self.",
        "np.array([8, -8]), 2", "array([ 2, -2])", slope=FLAT, cost=LIGHT, also="right_shift"),
}  # fmt: skip

UNARY = {
    "abs": Operation("|self|", "Of complex numbers the size, a float. The smallest integer has no opposite.",
        "[-1.5, 2.0]", "array([1.5, 2. ])", cost=LIGHT, exact="biuf", alike=True, also="absolute"),
    "negative": Operation("-self", "No bools; unsigned integers wrap.", "[-1.5, 2.0]", "array([ 1.5, -2. ])",
        cost=LIGHT, linear="self", exact="biufc", alike=True, also="neg"),
    "positive": Operation("self, in a new array", "No bools.", "[-1.5, 2.0]", "array([-1.5,  2. ])", linear="self",
        exact="biufc", alike=True),
    "sign": Operation("-1, 0 or 1", "NaN of NaN; of complex numbers self / |self|. No bools.", "[-1.5, 0.0]",
        "array([-1.,  0.])", exact="biuf", alike=True),
    "signbit": Operation("whether the sign is minus, of zeros and NaN too", "Bools, of floats; integers become some.",
        "[-0.0, 2.0]", "array([ True, False])", slope=FLAT, cost=LIGHT, exact="biuf", alike=True),
    "conj": Operation("the conjugate", "Of what is not complex, self in a new array.", "[1 + 2j]", "array([1.-2.j])",
        group=PART, linear="self", exact="biufc", alike=True, also="conjugate"),
    "real": Operation("the real part, in a new array", "", "[1 + 2j]", "array([1.])", group=PART, ufunc=None,
        linear="self"),
    "imag": Operation("the imaginary part, in a new array", "0 of what is not complex.", "[1 + 2j]", "array([2.])",
        group=PART, ufunc=None, linear="self"),
    "square": Operation("self * self", "", "[-1.5, 2.0]", "array([2.25, 4.  ])", cost=LIGHT, exact="biuf",
        alike=True),
    "reciprocal": Operation("1 / self", "Integers: cut to whole numbers; of 0 with a RuntimeWarning.", "[4.0, 0.5]",
        "array([0.25, 2.  ])", alike=True),
    "sqrt": Operation("the square root", FLOATS, "[4.0, 2.25]", "array([2. , 1.5])", exact="biuf", alike=True),
    "cbrt": Operation("the cube root, of self's sign", REALS, "[-8.0, 27.0]", "array([-2.,  3.])", cost=CHAINED,
        alike=True),
    "exp": Operation("e**self", FLOATS, "[0.0, 1.0]", "array([1.        , 2.71828183])", cost=CHAINED,
        faults=OF_INFINITY, alike=True),
    "exp2": Operation("2**self", FLOATS, "[3.0, -1.0]", "array([8. , 0.5])", cost=CHAINED, faults=OF_INFINITY,
        alike=True),
    "expm1": Operation("e**self - 1, with its digits near 0", FLOATS, "[0.0, 1e-20]", "array([0.e+00, 1.e-20])",
        cost=CHAINED),
    "log": Operation("the natural logarithm", FLOATS, "[1.0, 0.5]", "array([ 0.        , -0.69314718])",
        cost=CHAINED),
    "log2": Operation("the logarithm to base 2", FLOATS, "[8.0, 0.5]", "array([ 3., -1.])", cost=CHAINED),
    "log10": Operation("the logarithm to base 10", FLOATS, "[1000.0, 0.1]", "array([ 3., -1.])", cost=CHAINED),
    "log1p": Operation("log(1 + self), with its digits near 0", FLOATS, "[0.0, 1e-20]", "array([0.e+00, 1.e-20])",
        cost=CHAINED),
    "sin": Operation("the sine", FLOATS, "[0.0, 0.5]", "array([0.        , 0.47942554])", cost=CHAINED, alike=True),
    "cos": Operation("the cosine", FLOATS, "[0.0, 0.5]", "array([1.        , 0.87758256])", cost=CHAINED, alike=True),
    "tan": Operation("the tangent", FLOATS, "[0.0, 0.5]", "array([0.        , 0.54630249])", cost=CHAINED,
        alike=True),
    "asin": Operation("the angle of this sine, from -pi/2 to pi/2", FLOATS, "[0.0, 1.0]",
        "array([0.        , 1.57079633])", cost=CHAINED, also="arcsin"),
    "acos": Operation("the angle of this cosine, from 0 to pi", FLOATS, "[1.0, 0.0]",
        "array([0.        , 1.57079633])", cost=CHAINED, alike=True, also="arccos"),
    "atan": Operation("the angle of this tangent, from -pi/2 to pi/2", FLOATS, "[0.0, 1.0]",
        "array([0.        , 0.78539816])", cost=CHAINED, also="arctan"),
    "sinh": Operation("the hyperbolic sine", FLOATS, "[0.0, 1.0]", "array([0.        , 1.17520119])", cost=CHAINED),
    "cosh": Operation("the hyperbolic cosine", FLOATS, "[0.0, 1.0]", "array([1.        , 1.54308063])", cost=CHAINED,
        alike=True),
    "tanh": Operation("the hyperbolic tangent", FLOATS, "[0.0, 1.0]", "array([0.        , 0.76159416])",
        cost=CHAINED),
    "asinh": Operation("the number of this sinh", FLOATS, "[0.0, 1.0]", "array([0.        , 0.88137359])",
        cost=CHAINED, also="arcsinh"),
    "acosh": Operation("the number of this cosh", FLOATS, "[1.0, 2.0]", "array([0.       , 1.3169579])", cost=CHAINED,
        also="arccosh"),
    "atanh": Operation("the number of this tanh", FLOATS, "[0.0, 0.5]", "array([0.        , 0.54930614])",
        cost=CHAINED, also="arctanh"),
    "floor": Operation("the largest whole number up to self", KEPT, "[1.5, -1.5]", "array([ 1., -2.])", slope=FLAT,
        cost=LIGHT, exact="biuf", alike=True),
    "ceil": Operation("the smallest whole number from self on", KEPT, "[1.5, -1.5]", "array([ 2., -1.])", slope=FLAT,
        cost=LIGHT, exact="biuf", alike=True),
    "trunc": Operation("the whole part", KEPT, "[1.5, -1.5]", "array([ 1., -1.])", slope=FLAT, cost=LIGHT,
        exact="biuf", alike=True),
    "round": Operation("the nearest multiple of 10**-decimals, of two the even one: whole numbers by default",
        "NumPy's round: integers stay as they are where decimals is not negative; of complex numbers both parts. To\n"
        "decimals it is rint(self * 10**decimals) / 10**decimals and, where decimals is negative,\n"
        "rint(self / 10**-decimals) * 10**-decimals, each step rounded to the dtype; of integers in float64.",
        "[1.5, 2.5]", "array([2., 2.])", slope=FLAT, ufunc="rint", cost=LIGHT, takes="int decimals=0, ", exact="f",
        alike=True, also="rint"),
    "isnan": Operation("whether it is NaN", "Bools; of complex numbers, whether a part is.", "[np.nan, np.inf, 1.0]",
        "array([ True, False, False])", group=TEST, slope=FLAT, cost=LIGHT, exact="biufc", alike=True),
    "isinf": Operation("whether it is infinite", "Bools; of complex numbers, whether a part is.",
        "[np.nan, np.inf, 1.0]", "array([False,  True, False])", group=TEST, slope=FLAT, cost=LIGHT, exact="biufc",
        alike=True),
    "isfinite": Operation("whether it is a number and finite", "Bools; of complex numbers, whether both parts are.",
        "[np.nan, np.inf, 1.0]", "array([False, False,  True])", group=TEST, slope=FLAT, cost=LIGHT, exact="biufc",
        alike=True),
    "logical_not": Operation("whether it is 0", "Bools.", "[0, 2]", "array([ True, False])", slope=FLAT,
        exact="biufc", alike=True),
    "bitwise_invert": Operation("~self", "Integers and bools.", "[0, 2]", "array([-1, -3])", slope=FLAT, cost=LIGHT,
        exact="biu", also="invert bitwise_not"),
}  # fmt: skip

ELEMENTWISE = BINARY | UNARY
