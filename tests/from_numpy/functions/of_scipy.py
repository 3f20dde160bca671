"""Functions of SciPy that are written out."""

import numpy as np
import scipy.special as sp
from scipy import ndimage, signal, stats

from from_numpy.functions.registry import program


def _of_types(rng):
    return rng.normal(size=12), rng.random(12), rng.normal(size=(7, 9)), rng.integers(0, 9, (6, 5))


@program(_of_types)
def special_functions(x, p, t, n):
    return (
        (sp.erf(x), sp.erfc(x), sp.gamma(p + 0.3), sp.gammaln(x), sp.expit(x), sp.logit(p)),
        (sp.xlogy(n, p[:5]), sp.xlog1py(n, p[:5]), sp.entr(x), sp.rel_entr(p, p[::-1])),
        (sp.psi(x * 3), sp.digamma(p), sp.ndtr(x), sp.ndtri(p), sp.erfinv(x / 4), sp.i0(x)),
        (sp.comb(n + 3, 3), sp.comb(10, n), sp.factorial(n), sp.binom(x, 2), sp.kl_div(p, p[::-1])),
        (sp.ndtri(np.array([0.0, 1e-300, 0.5, 1.0, 1 - 1e-12])), sp.psi(np.array([-2.5, 1.0]))),
    )


@program(_of_types)
def sums_of_exponentials(x, p, t, n):
    return (
        sp.logsumexp(x),
        sp.logsumexp(t, axis=1, keepdims=True),
        sp.logsumexp(t, axis=0, b=np.abs(t)),
        sp.softmax(t, axis=1),
        sp.softmax(x),
        sp.log_softmax(t, axis=-1),
    )


@program(_of_types)
def neighbourhoods(x, p, t, n):
    kernel = np.array([[1.0, 2, 0], [0, 1, -1], [0.5, 0, 3]])
    return (
        [ndimage.convolve(t, kernel, mode=m) for m in ("reflect", "constant", "wrap")],
        ndimage.correlate(t, kernel, mode="nearest"),
        ndimage.convolve(n, np.array([[1, 2], [3, 4]])),
        ndimage.convolve1d(t, x[:4], axis=0),
        ndimage.correlate1d(t, x[:3], mode="mirror"),
    )


@program(_of_types)
def smoothed(x, p, t, n):
    return (
        ndimage.gaussian_filter(t, 1.0),
        ndimage.gaussian_filter(t, (0.5, 1.2), mode="nearest"),
        ndimage.gaussian_filter1d(x, 1.5, order=1),
        ndimage.uniform_filter(t, 3),
        ndimage.uniform_filter(t, size=(2, 4)),
        ndimage.laplace(t),
        ndimage.sobel(t, axis=0),
        ndimage.prewitt(n),
        ndimage.maximum_filter(t, size=3),
        ndimage.minimum_filter(n, size=(2, 3)),
    )


@program(_of_types)
def filtered(x, p, t, n):
    kernel = np.array([[1.0, 2], [0, -1], [0.5, 3]])
    b, a = [0.2, 0.3, 0.1], [1.0, -0.4, 0.2]
    return (
        [signal.convolve2d(t, kernel, mode=m) for m in ("full", "same", "valid")],
        signal.convolve2d(t, kernel, mode="same", boundary="wrap"),
        [signal.correlate2d(t, kernel, mode=m) for m in ("full", "same", "valid")],
        signal.lfilter(b, a, x),
        signal.lfilter([1.0, 2.0], 2.0, t, axis=0),
        signal.lfilter(b, a, x, zi=x[:2]),
        signal.detrend(x),
        signal.detrend(t, axis=0, type="constant"),
        x * signal.windows.hann(12),
    )


@program(_of_types)
def statistics_of_samples(x, p, t, n):
    return (
        (stats.zscore(x), stats.zscore(t, axis=1, ddof=1), stats.gmean(p), stats.hmean(p)),
        (stats.sem(x), stats.skew(t), stats.kurtosis(x), stats.kurtosis(t, fisher=False)),
        (stats.norm.pdf(x), stats.norm.cdf(x, 1.0, 2.0), stats.norm.ppf(p), stats.norm.sf(x)),
        (stats.norm.logpdf(x, loc=p, scale=2), stats.expon.pdf(p, scale=2), stats.expon.cdf(x)),
        (stats.uniform.pdf(x), stats.uniform.cdf(x, -1, 2)),
    )
