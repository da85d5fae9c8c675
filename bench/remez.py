"""The polynomials of nbkernels/elementary, by Remez' algorithm: python bench/remez.py [NAME ...]. Needs mpmath.

For each polynomial p the function f that it stands for, the weight w of its error where it is used, and the interval:
p is the polynomial of its degree with the least max |w*(p - f)|, printed with the logarithm of that maximum.
"""

import sys

import mpmath as mp

ZERO = mp.mpf(10) ** -9  # the functions are written with a division by their argument


def remez(f, weight, low, high, degree, rounds=8, grid=2000):
    """(coefficients, largest weighted error)"""
    n = degree + 2
    cosines = [mp.cos(mp.pi * (i + mp.mpf(1) / 2) / grid) for i in range(grid)]
    points = [(low + high) / 2 - (high - low) / 2 * c for c in cosines]
    values = [(f(x), weight(x)) for x in points]
    chosen = [int(grid * (2 * i + 1) / (2 * n)) for i in range(n)]
    for _ in range(rounds):
        system, right = mp.matrix(n, n), mp.matrix(n, 1)
        for i, at in enumerate(chosen):
            for j in range(degree + 1):
                system[i, j] = points[at] ** j
            system[i, degree + 1] = (-1) ** i / values[at][1]
            right[i] = values[at][0]
        coefficients = list(mp.lu_solve(system, right))[:-1]
        errors = [w * (mp.polyval(coefficients[::-1], x) - y) for x, (y, w) in zip(points, values)]
        extremes = []  # the largest error of each run of one sign
        for i, error in enumerate(errors):
            if not extremes or (error > 0) != (errors[extremes[-1]] > 0):
                extremes.append(i)
            elif abs(error) > abs(errors[extremes[-1]]):
                extremes[-1] = i
        while len(extremes) > n:
            extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
        if len(extremes) < n:
            break
        chosen = extremes
    return coefficients, max(map(abs, errors))


def exp(r):
    return (mp.expm1(r) - r) / r**2 if abs(r) > ZERO else 0.5 + r / 6


def log(z):
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) / s - 2) / z


def log2(z):
    """What follows LOG2_FIRST, 2 / log(2), in log2((1 + s) / (1 - s)) / s."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s), 2) / s - 2 / mp.log(2)) / z


def exp2(r):
    return (mp.mpf(2) ** r - 1) / r if abs(r) > ZERO else mp.log(2)


def odd(function):
    """(function(x) / x - 1) / x**2 in z = x**2"""
    return lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def cases():
    """name: (f, weight, {dtype: (low, high, degree)})"""
    half, root = mp.log(2) / 2 * mp.mpf("1.0001"), (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mp.mpf("1.001")
    near = {"float32": (ZERO, root**2, 3), "float64": (ZERO, root**2, 6)}
    unit = {"float32": (ZERO, mp.mpf(1) / 9, 4), "float64": (ZERO, mp.mpf(1) / 9, 10)}
    middle, floor = (mp.mpf("-0.5001"), mp.mpf("0.5001")), mp.mpf("4e-4")
    quarter, small = (ZERO, mp.mpf("0.25")), (ZERO, mp.mpf("0.625") ** 2)
    eighth, wider = (mp.pi / 4) ** 2 * mp.mpf("1.002"), mp.mpf("0.69")  # a short 2/pi may miss by one
    return {
        "EXP": (exp, lambda r: mp.sqrt(r * r + floor), {"float32": (-half, half, 5), "float64": (-half, half, 10)}),
        "LOG": (log, lambda z: z / 2, near),
        "LOG_REST": (lambda z: (log(z) - mp.mpf(2) / 3) / z, lambda z: z * z / 2, {"float64": (ZERO, root**2, 6)}),
        "LOG2_REST": (log2, lambda z: z * mp.log(2) / 2, {"float32": (ZERO, mp.mpf("0.072") ** 2, 2)}),
        "EXP2": (exp2, lambda r: mp.sqrt(r * r + floor), {"float32": (*middle, 5), "float64": (*middle, 10)}),
        "LOG1P": (log, lambda z: z / 2, unit),
        "TANH": (odd(mp.tanh), lambda z: z, {"float32": (*small, 4), "float64": (*small, 11)}),
        "ASIN": (odd(mp.asin), lambda z: z, {"float32": (*quarter, 4), "float64": (*quarter, 11)}),
        "ATAN": (odd(mp.atan), lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)),
                 {"float32": (ZERO, mp.mpf(1), 8), "float64": (ZERO, mp.mpf(1), 19)}),
        "ERF": (lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
                {"float32": (ZERO, mp.mpf(1), 6), "float64": (ZERO, mp.mpf(1), 12)}),
        "ERFC": (lambda t: mp.log(mp.erfc(1 + t)), lambda t: mp.erfc(1 + t) / mp.erf(1 + t),
                 {"float32": (mp.mpf(0), mp.mpf(3), 7), "float64": (mp.mpf(0), mp.mpf(5), 20)}),
        "SIN": (odd(mp.sin), lambda z: z, {"float32": (ZERO, wider, 2), "float64": (ZERO, eighth, 6)}),
        "TAN": (odd(mp.tan), lambda z: z * mp.sqrt(z) / mp.tan(mp.sqrt(z)),
                {"float32": (ZERO, wider, 6), "float64": (ZERO, eighth, 13)}),
        "COS": (lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > 10 * ZERO else mp.mpf(1) / 24,
                lambda z: z * z, {"float32": (ZERO, wider, 2), "float64": (ZERO, eighth, 5)}),
    }  # fmt: skip


if __name__ == "__main__":
    mp.mp.dps = 70
    for name, (f, weight, fits) in cases().items():
        for dtype, (low, high, degree) in fits.items() if name in (sys.argv[1:] or cases()) else ():
            coefficients, error = remez(f, weight, low, high, degree)
            print(f"{name} {dtype} 2**{float(mp.log(error, 2)):.1f}", [float(c) for c in coefficients], sep="\n  ")
