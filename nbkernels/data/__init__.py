"""Data that the package ships: `digits()`. Attribution and licences: LICENSE.txt beside this file."""

from importlib import resources


def digits():
    """(pixels, labels) of 1,797 handwritten digits: uint8 (1797, 64), a row an 8x8 image in 0..16; uint8 (1797,).

    The test set of "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, UCI Machine Learning
    Repository, 1998, https://doi.org/10.24432/C50P49, CC BY 4.0, in the copy that scikit-learn distributes.

    >>> pixels, labels = digits()
    >>> pixels.shape, int(pixels.max()), labels[:5].tolist()
    ((1797, 64), 16, [0, 1, 2, 3, 4])
    """
    import numpy as np

    with (resources.files(__name__) / "digits.npz").open("rb") as file, np.load(file) as arrays:
        return arrays["pixels"], arrays["labels"]
