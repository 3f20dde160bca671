"""Statistics of samples."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("statistics")


@program("textbook", lambda rng, n, m: (rng.normal(3, 2, (n, m)),), (7, 13), (20, 3))
def standardize(X):
    mu = X.mean(axis=0)
    sigma = X.std(axis=0, ddof=1)
    return (X - mu) / sigma, mu, sigma


@program("npbench", lambda rng, n, m: (m, float(n), rng.random((n, m))), (9, 7), (13, 5))
def covariance(M, float_n, data):
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((M, M), dtype=data.dtype)
    for i in range(M):
        cov[i:M, i] = data[:, i] @ data[:, i:M] / (float_n - 1.0)
        cov[i, i:M] = cov[i:M, i]
    return cov


@program("npbench", lambda rng, n, m: (m, float(n), rng.random((n, m))), (9, 7), (13, 5))
def correlation(M, float_n, data):
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(float_n) * stddev
    corr = np.eye(M, dtype=data.dtype)
    for i in range(M - 1):
        corr[i + 1 : M, i] = corr[i, i + 1 : M] = data[:, i] @ data[:, i + 1 : M]
    return corr


@program("stackoverflow", lambda rng, n: (rng.random(n), 3), 13, 20)
def moving_average(a, n=3):
    ret = np.cumsum(a, dtype=float)
    ret[n:] = ret[n:] - ret[:-n]
    return ret[n - 1 :] / n


@program("wikipedia", lambda rng, n: (rng.normal(size=n),), 9, 17)
def welford(samples):
    count, mean, M2 = 0, 0.0, 0.0
    for x in samples:
        count += 1
        delta = x - mean
        mean += delta / count
        M2 += delta * (x - mean)
    if count < 2:
        return float("nan")
    return mean, M2 / count, M2 / (count - 1)


@program("geeksforgeeks", lambda rng, n: (rng.random(n), rng.random(n)), 10, 15)
def estimate_coef(x, y):
    n = np.size(x)
    mean_x, mean_y = np.mean(x), np.mean(y)
    sxy = np.sum(x * y) - n * mean_x * mean_y
    sxx = np.sum(x * x) - n * mean_x * mean_x
    slope = sxy / sxx
    return (mean_y - slope * mean_x, slope)


@program("textbook", lambda rng, n: (rng.random(n), rng.random(n)), 8, 13)
def weighted_stats(values, weights):
    average = np.average(values, weights=weights)
    variance = np.average((values - average) ** 2, weights=weights)
    return average, np.sqrt(variance)


@program("blog", lambda rng, n: (rng.normal(size=n), 5), 21, 40)
def histogram_by_hand(x, nbins):
    lo, hi = x.min(), x.max()
    edges = np.linspace(lo, hi, nbins + 1)
    idx = ((x - lo) / (hi - lo) * nbins).astype(int)
    idx[idx == nbins] = nbins - 1
    counts = np.zeros(nbins, dtype=int)
    np.add.at(counts, idx, 1)
    density = counts / (counts.sum() * np.diff(edges))
    return counts, edges, density


@program("textbook", lambda rng, n: (rng.normal(size=n),), 15, 24)
def five_numbers(x):
    q1, med, q3 = np.percentile(x, [25, 50, 75])
    iqr = q3 - q1
    lower, upper = q1 - 1.5 * iqr, q3 + 1.5 * iqr
    n_out = ((x < lower) | (x > upper)).sum()
    return x.min(), q1, med, q3, x.max(), n_out


@program("stackoverflow", lambda rng, n: (np.append(rng.normal(size=n), [30.0, -25.0]),), 11, 19)
def reject_outliers(data, m=2.0):
    d = np.abs(data - np.median(data))
    mdev = np.median(d)
    s = d / mdev if mdev else np.zeros(len(d))
    return data[s < m]


@program("blog", lambda rng, n, m: (rng.normal(size=n), np.linspace(-3, 3, m)), (9, 13), (20, 7))
def kde_gaussian(x, grid, bandwidth=None):
    if bandwidth is None:
        bandwidth = x.std() * len(x) ** (-1 / 5)
    u = (grid[:, None] - x[None, :]) / bandwidth
    return np.exp(-0.5 * u**2).sum(axis=1) / (len(x) * bandwidth * np.sqrt(2 * np.pi))


@program("blog", lambda rng, n: (rng.random(n), rng.integers(0, n, (30, n))), 9, 14)
def bootstrap_ci(data, indices, alpha=0.1):
    means = data[indices].mean(axis=1)
    means.sort()
    lo = means[int(alpha / 2 * len(means))]
    hi = means[int((1 - alpha / 2) * len(means))]
    return lo, hi, means.std(ddof=1)


@program("stackoverflow", lambda rng, n: (rng.normal(size=n), 5), 16, 25)
def autocorrelation(x, nlags):
    xm = x - np.mean(x)
    acf = [1.0]
    for lag in range(1, nlags + 1):
        acf.append(np.sum(xm[lag:] * xm[:-lag]) / np.sum(xm**2))
    return np.array(acf)


@program("textbook", lambda rng, n: (rng.random(n),), 9, 12)
def ecdf(data):
    x = np.sort(data)
    y = np.arange(1, len(x) + 1) / len(x)
    return x, y


@program(
    "blog",
    lambda rng, n, m: (
        rng.random(n),
        rng.random(m),
        np.array([rng.permutation(n + m) for _ in range(20)]),
    ),
    (7, 9),
    (5, 12),
)
def permutation_test(a, b, orders):
    observed = abs(a.mean() - b.mean())
    pooled = np.concatenate([a, b])
    count = 0
    for order in orders:
        shuffled = pooled[order]
        if abs(shuffled[: len(a)].mean() - shuffled[len(a) :].mean()) >= observed:
            count += 1
    return count / len(orders)


@program("stackoverflow", lambda rng, n: (rng.random(n), rng.random(n)), 9, 14)
def spearman(x, y):
    rx = x.argsort().argsort()
    ry = y.argsort().argsort()
    return np.corrcoef(rx, ry)[0, 1]


@program("wikipedia", lambda rng, n: (rng.integers(0, 4, n),), 17, 30)
def entropy(labels, base=2):
    counts = np.bincount(labels)
    probs = counts[counts > 0] / len(labels)
    return -np.sum(probs * np.log(probs)) / np.log(base)


@program("blog", lambda rng, n: (rng.integers(0, 3, n), rng.integers(0, 4, n)), 25, 40)
def mutual_information(a, b):
    joint = np.zeros((3, 4))
    for i, j in zip(a, b):
        joint[i, j] += 1
    joint /= joint.sum()
    pa = joint.sum(axis=1, keepdims=True)
    pb = joint.sum(axis=0, keepdims=True)
    mask = joint > 0
    return np.sum(joint[mask] * np.log(joint[mask] / (pa * pb)[mask]))


@program("scipy", lambda rng, n: (rng.normal(size=n),), 15, 22)
def moments(x):
    m = x.mean()
    m2, m3, m4 = [((x - m) ** k).mean() for k in (2, 3, 4)]
    skew = m3 / m2**1.5
    kurtosis = m4 / m2**2 - 3
    return {"mean": m, "variance": m2, "skewness": skew, "kurtosis": kurtosis}


@program("textbook", lambda rng, n: (rng.integers(0, 6, n),), 17, 23)
def mode_and_frequencies(x):
    counts = np.bincount(x, minlength=8)
    mode = counts.argmax()
    return mode, counts[mode], counts / x.size


@program("blog", lambda rng, n, m: (rng.normal(size=(n, m)),), (9, 3), (14, 4))
def mahalanobis(X):
    delta = X - X.mean(0)
    VI = np.linalg.inv(np.cov(X, rowvar=False))
    return np.sqrt(np.einsum("nj,jk,nk->n", delta, VI, delta))


@program("npbench", lambda rng, n: (rng.random(n), rng.random(n) * 2, 5), 40, 61)
def azimint_naive(data, radius, npt):
    rmax = radius.max()
    res = np.zeros(npt, dtype=np.float64)
    for i in range(npt):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        mask_r12 = np.logical_and((r1 <= radius), (radius < r2))
        values_r12 = data[mask_r12]
        res[i] = values_r12.mean()
    return res


@program("textbook", lambda rng, n: (rng.integers(5, 30, (3, n)),), 4, 6)
def chi_square(observed):
    row = observed.sum(axis=1).reshape(-1, 1)
    col = observed.sum(axis=0)
    expected = row * col / observed.sum()
    stat = ((observed - expected) ** 2 / expected).sum()
    dof = (observed.shape[0] - 1) * (observed.shape[1] - 1)
    return stat, dof


@program("blog", lambda rng, n: (rng.random(n) + 0.5,), 8, 13)
def jackknife(x):
    n = len(x)
    estimates = np.empty(n)
    for i in range(n):
        estimates[i] = np.log(np.delete(x, i).mean())
    bias = (n - 1) * (estimates.mean() - np.log(x.mean()))
    return estimates, bias


@program("survey", lambda rng, n: (rng.integers(1, 100, n), 3), 11, 16)
def trimmed_mean(x, k):
    s = np.sort(x)
    trimmed = s[k:-k]
    return trimmed.mean(), np.exp(np.log(x).mean()), len(x) / np.sum(1.0 / x)


@program(
    "stackoverflow", lambda rng, n, k: (rng.random(n), rng.integers(0, k, n)), (17, 4), (30, 5)
)
def group_means(values, groups):
    n_groups = groups.max() + 1
    sums = np.bincount(groups, weights=values, minlength=n_groups)
    counts = np.bincount(groups, minlength=n_groups)
    means = sums / np.maximum(counts, 1)
    centred = values - means[groups]
    return means, centred


@program(
    "repository",
    lambda rng, n, m: (np.where(rng.random((n, m)) < 0.2, np.nan, rng.random((n, m))),),
    (7, 5),
    (11, 4),
)
def impute_missing(X):
    X = X.copy()
    col_mean = np.nanmean(X, axis=0)
    inds = np.where(np.isnan(X))
    X[inds] = np.take(col_mean, inds[1])
    return X, np.isnan(X).any(), len(inds[0])
