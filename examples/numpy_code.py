"""Drop-in in NumPy code: k-nearest neighbours of handwritten digits, the distances by one addmm.

|p - q|**2 = |p|**2 + |q|**2 - 2 p.q: all distances are addmm(|q|**2, p, qᵀ, alpha=-2), but for |p|**2, which is the
same along a row and does not change who is near.
"""

import numpy as np

import nbkernels
from nbkernels.data import digits

pixels, labels = digits()
x = pixels.astype(np.float32)
train, test = x[:1400], x[1400:]

squares = nbkernels.sum_to(nbkernels.multiply(train, train), (len(train), 1))
distances = nbkernels.addmm(squares.T, test, train.T, alpha=-2)

nearest = np.argpartition(distances, 3, axis=1)[:, :3]  # NumPy and this library share arrays: mix them freely
votes = labels[nearest]
guess = np.array([np.bincount(vote, minlength=10).argmax() for vote in votes])
accuracy = np.mean(guess == labels[1400:])
print(f"3 nearest neighbours: {accuracy:.3f} of {len(test)} digits right")
assert accuracy > 0.95
