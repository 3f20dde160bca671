"""Programs of many functions of SciPy each, which ranks call on their blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import fft, integrate, interpolate, linalg, ndimage, signal, spatial, special, stats

from from_numpy.corpus.registry import Case


def filters_of_signals(x, y, m):
    b, a = signal.butter(2, 0.2)
    sections = signal.butter(4, 0.3, output="sos")
    return (
        (signal.lfilter(b, a, x), signal.lfilter(b, a, x, axis=0), signal.filtfilt(b, a, x)),
        (signal.sosfilt(sections, x), signal.sosfiltfilt(sections, x, axis=-1)),
        (signal.savgol_filter(x, 7, 2, axis=0), signal.savgol_filter(x, 5, 3, deriv=1)),
        (signal.detrend(x), signal.detrend(x, 0, "constant"), signal.hilbert(x, axis=0)),
        (signal.resample(x, 10), signal.resample(x, 30, axis=1), signal.upfirdn(b, x, 2)),
        (signal.decimate(x, 2, ftype="fir"), signal.czt(x, 5), signal.resample_poly(x, 2, 3)),
    )


def transforms(x, y, m):
    return (
        (fft.dct(x), fft.idct(x, 3, norm="ortho"), fft.dst(x, axis=0), fft.dctn(m, axes=(1, 2))),
        (fft.hfft2(m, axes=(0, 1)), fft.ihfft(x, axis=0), fft.idstn(m, axes=[0])),
    )


def images(x, y, m):
    return (
        (ndimage.median_filter(m, 3, axes=(1, 2)), ndimage.maximum_filter1d(x, 3, axis=0)),
        (ndimage.spline_filter1d(x), ndimage.grey_opening(m, 3, axes=(0, 1))),
        (ndimage.gaussian_laplace(m, 1.0, axes=(1, 2)), ndimage.median_filter(x, 3)),
        (ndimage.zoom(x, 2, order=1), ndimage.binary_erosion(x > 0.3)),
    )


def statistics(x, y, m):
    test = stats.ttest_ind(x, y, axis=0)
    line = stats.linregress(x, y, axis=1)
    return (
        (stats.zscore(x), stats.zscore(x, axis=1), stats.rankdata(x, axis=0), stats.iqr(x, axis=1)),
        (stats.gmean(x), stats.hmean(x, axis=1), stats.skew(x, keepdims=True), stats.sem(x)),
        (stats.kurtosis(x, axis=1), stats.median_abs_deviation(x), stats.trim_mean(x, 0.1)),
        (test.statistic, test.pvalue, line.slope, line.stderr, tuple(stats.pearsonr(x, y))),
        (tuple(stats.f_oneway(x, y, x * y)), stats.entropy(x, axis=1), stats.kstat(x, axis=0)),
        (stats.mannwhitneyu(x, y).pvalue, tuple(stats.ks_2samp(x, y, axis=1))[:2]),
    )


def densities(x, y, m):
    normal = stats.norm(y[0], x[0] + 1)
    return (
        (stats.norm.cdf(x), stats.norm.pdf(x, y, scale=2.0), normal.ppf(x), normal.mean()),
        (stats.t.ppf(x, 4), stats.gamma.logpdf(x, 2.5), stats.beta.sf(x, 2.0, y + 1)),
        (stats.poisson.pmf(np.floor(x * 5), 2.5), stats.binom.cdf(np.floor(x * 5), 6, y)),
    )


def special_functions(x, y, m):
    each = np.zeros(len(x))
    for i in range(len(x)):
        each[i] = special.j0(x[i, 0])
    return (
        (special.jv(1.5, x), special.gammainc(x, y), special.ellipk(x), special.airy(x)),
        (special.betaln(x, y), special.psi(x), special.erfinv(x - 0.5), special.comb(5, x)),
        (special.sph_harm_y(2, 1, x, y), special.polygamma(1, x), special.lambertw(x)),
        (special.erf(x) + special.gammaln(y), special.softmax(x, axis=1), each),
    )


def matrices(x, y, m):
    return (
        (linalg.expm(m), linalg.cosm(m), linalg.sqrtm(m), linalg.cholesky(m), linalg.polar(m)),
        (linalg.lu(m), linalg.schur(m), linalg.qr(m, mode="r"), linalg.pinvh(m)),
        (linalg.circulant(x), linalg.toeplitz(x[0]), linalg.solve(m, m)),
    )


def sums_and_places(x, y, m):
    at = np.linspace(0, 1, 17)
    spline = interpolate.CubicSpline(at, x[0])
    grid = interpolate.RegularGridInterpolator((np.arange(7.0), at), x)
    tree = spatial.cKDTree(m[0])
    return (
        (integrate.simpson(x), integrate.simpson(x, at, axis=1), integrate.romb(x[:, :9])),
        (integrate.cumulative_trapezoid(x, axis=0), integrate.cumulative_simpson(x, x=at)),
        (spline(y), spline.derivative()(y), interpolate.PchipInterpolator(at, x[1])(y)),
        (grid(np.stack((y[0] * 6, y[1]), -1)), tree.query(m[1])[0]),
        (spatial.distance.cdist(x, y), spatial.distance.jensenshannon(x, y)),
    )


def _given(rng: Any) -> Any:
    m = rng.random((5, 4, 4))
    return rng.random((7, 17)), rng.random((7, 17)), m @ np.swapaxes(m, 1, 2) + np.eye(4)


CASES = [
    Case(f.__name__, f, "scipy", "", _given, ())
    for f in (
        *(filters_of_signals, transforms, images, statistics, densities, special_functions),
        *(matrices, sums_and_places),
    )
]
