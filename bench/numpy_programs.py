"""The programs of bench_numpy_programs.py: functions of nothing whose results are arrays. None knows nbkernels."""

import functools

import numpy as np

PROGRAMS = {}


def program(name):
    def register(function):
        PROGRAMS[name] = function
        return function

    return register


def programs():
    """All of them, by name."""
    for part in (estimators, models, filters, chains, language_model):
        part()
    return PROGRAMS


@functools.cache
def digits():
    from sklearn import datasets

    x, y = datasets.load_digits(return_X_y=True)
    return x, x.astype(np.int64), y


def estimator(name, make, method="predict", integers=False):
    """Fit and apply an estimator of scikit-learn's to 1797 digits, as floats or as integers."""

    @program(f"scikit-learn {name}, {'int64' if integers else 'float64'}")
    def run():
        floats, whole, y = digits()
        x = whole if integers else floats
        return [getattr(make().fit(x[:1200], y[:1200]), method)(x[1200:])]


def estimators():
    from sklearn.cluster import KMeans
    from sklearn.decomposition import NMF, PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import BernoulliRBM, MLPClassifier

    for integers in (False, True):
        estimator("Ridge", Ridge, integers=integers)
        estimator("LogisticRegression", lambda: LogisticRegression(max_iter=20), "predict_proba", integers)
        estimator("PCA", lambda: PCA(20, random_state=0), "transform", integers)
        estimator("KMeans", lambda: KMeans(10, n_init=1, random_state=0), "transform", integers)
        estimator("GaussianNB", GaussianNB, "predict_proba", integers)
        estimator("MultinomialNB", MultinomialNB, "predict_proba", integers)
        estimator("BernoulliNB", lambda: BernoulliNB(binarize=8), "predict_proba", integers)
        estimator("ComplementNB", ComplementNB, "predict_proba", integers)
        estimator("LDA", LinearDiscriminantAnalysis, "predict_proba", integers)
        estimator("KNeighbors", KNeighborsClassifier, "predict_proba", integers)
        estimator("KernelRidge", lambda: KernelRidge(kernel="poly", degree=2), integers=integers)
        estimator("MLP", lambda: MLPClassifier((32,), max_iter=5, random_state=0), "predict_proba", integers)
    estimator("NMF", lambda: NMF(10, max_iter=20, random_state=0, init="random"), "transform")
    estimator("GaussianProcess", lambda: GaussianProcessRegressor(random_state=0, alpha=1e-2))
    estimator("RandomForest", lambda: RandomForestClassifier(10, random_state=0), "predict_proba")
    estimator("BernoulliRBM", lambda: BernoulliRBM(32, n_iter=1, random_state=0), "transform")


def models():
    import statsmodels.api as sm
    from statsmodels.tsa.api import VAR

    rng = np.random.default_rng(0)
    x, e = sm.add_constant(rng.standard_normal((2000, 12))), rng.standard_normal(2000)
    y, counts = x @ np.arange(13) + e, rng.poisson(3, 2000)
    series, family = rng.standard_normal((400, 3)).cumsum(0), sm.families.Poisson()

    program("statsmodels OLS with robust errors")(lambda: [sm.OLS(y, x).fit(cov_type="HC3").bse])
    program("statsmodels GLM Poisson, int64 counts")(lambda: [sm.GLM(counts, x, family=family).fit().params])
    program("statsmodels Logit")(lambda: [sm.Logit((y > 0).astype(int), x[:, :6]).fit(disp=0, maxiter=15).params])
    program("statsmodels VAR")(lambda: [VAR(series).fit(4).forecast(series[-4:], 5)])


def filters():
    from filterpy.kalman import ExtendedKalmanFilter, KalmanFilter, MerweScaledSigmaPoints, UnscentedKalmanFilter

    rng = np.random.default_rng(1)
    measured = rng.standard_normal((200, 2)).cumsum(0)
    step = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1.0]])
    seen = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0]])

    @program("filterpy KalmanFilter")
    def kalman():
        f = KalmanFilter(4, 2)
        f.x, f.F, f.H = np.zeros(4), step, seen
        return f.batch_filter(measured)[:2]

    @program("filterpy ExtendedKalmanFilter")
    def extended():
        f = ExtendedKalmanFilter(4, 2)
        f.F = step
        for z in measured:
            f.predict()
            f.update(z[:, None], lambda x: seen, lambda x: seen @ x)
        return [f.x, f.P]

    @program("filterpy UnscentedKalmanFilter")
    def unscented():
        points = MerweScaledSigmaPoints(4, 0.1, 2.0, -1)
        f = UnscentedKalmanFilter(4, 2, 1.0, lambda x: seen @ x, lambda x, dt: step @ x, points)
        f.Q *= 0.01
        for z in measured[:80]:
            f.predict()
            f.update(z)
        return [f.x, f.P]


def chains():
    from hmmlearn import hmm

    rng = np.random.default_rng(2)
    x, words = rng.standard_normal((1000, 4)), rng.integers(0, 12, (1000, 1))

    @program("hmmlearn GaussianHMM")
    def gaussian():
        model = hmm.GaussianHMM(4, n_iter=5, random_state=0, covariance_type="full").fit(x)
        return [model.transmat_, model.predict_proba(x)]

    @program("hmmlearn CategoricalHMM, int64 symbols")
    def categorical():
        model = hmm.CategoricalHMM(4, n_iter=10, random_state=0).fit(words)
        return [model.emissionprob_]


# -- a language model --------------------------------------------------------------------------------------------------

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 128, 4, 2, 500, 64


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + x.dtype.type(1e-3))


def gelu(x):
    kind = x.dtype.type
    return x * kind(0.5) * (1 + np.tanh(kind(0.798) * (x + kind(0.0447) * x * x * x)))


def forward(tokens, weights, product):
    """A transformer's probabilities for the word after each of the tokens."""
    x = weights["words"][tokens] + weights["places"][: len(tokens)]
    mask = np.triu(np.full((len(tokens), len(tokens)), -1e4, x.dtype), 1)
    for layer in weights["layers"]:
        q, k, v = np.split(product(norm(x), layer["qkv"]), 3, -1)
        q, k, v = (each.reshape(len(tokens), HEADS, -1).swapaxes(0, 1) for each in (q, k, v))
        seen = softmax(q @ k.swapaxes(1, 2) / x.dtype.type(np.sqrt(WIDTH / HEADS)) + mask) @ v
        x = x + product(seen.swapaxes(0, 1).reshape(len(tokens), WIDTH), layer["out"])
        x = x + product(gelu(product(norm(x), layer["up"])), layer["down"])
    return softmax(product(norm(x), weights["head"]))


def quantised(x, w):
    """x @ w of int8 weights with a scale: x is rounded to int8 row by row, and integers are multiplied."""
    whole, scale = w
    top = np.abs(x).max(-1, keepdims=True) / 127
    return (np.round(x / top).astype(np.int32) @ whole).astype(x.dtype) * top * scale


def language_model():
    rng = np.random.default_rng(3)

    def matrix(rows, columns):
        return (rng.standard_normal((rows, columns)) * 0.08).astype(np.float32)

    def layer():
        shapes = {
            "qkv": (WIDTH, 3 * WIDTH),
            "out": (WIDTH, WIDTH),
            "up": (WIDTH, 4 * WIDTH),
            "down": (4 * WIDTH, WIDTH),
        }
        return {name: matrix(*shape) for name, shape in shapes.items()}

    weights = {"words": matrix(WORDS, WIDTH), "places": matrix(LENGTH, WIDTH), "head": matrix(WIDTH, WORDS)}
    weights["layers"] = [layer() for _ in range(LAYERS)]
    tokens = rng.integers(0, WORDS, LENGTH)

    def each(change, tree):
        if isinstance(tree, dict):
            return {name: each(change, part) for name, part in tree.items()}
        return [each(change, part) for part in tree] if isinstance(tree, list) else change(tree)

    def whole(w):
        scale = np.abs(w).max() / np.float32(127)
        return np.round(w / scale).astype(np.int32), scale

    halves = each(lambda w: w.astype(np.float16), weights)
    eighths = weights | {"head": whole(weights["head"]), "layers": each(whole, weights["layers"])}
    program("language model, float32")(lambda: [forward(tokens, weights, np.matmul)])
    program("language model, float16")(lambda: [forward(tokens, halves, np.matmul)])
    program("language model, int8 weights in int32 products")(lambda: [forward(tokens, eighths, quantised)])
