"""Statistics of samples by ``scipy.stats``, and the functions behind their chances."""

import numpy as np
from scipy import sparse, special, stats

from from_numpy.functions.registry import program


def _samples(rng):
    return rng.normal(size=17), rng.normal(size=17)


@program(_samples)
def incomplete_functions(x, y):
    a, b = np.abs(x) * 5 + 0.1, np.abs(y) * 3 + 0.1
    return (
        (special.betainc(a, b, np.linspace(0, 1, 17)), special.betainc(500.0, 300.0, b / 12)),
        (special.gammainc(a, b * 2), special.gammaincc(a, b * 2), special.gammainc(3, 0 * x)),
        special.gammainc(200.0, np.linspace(100, 300, 17) + x[0]),
        (special.stdtr(7, x * 3), special.fdtr(3, 8, b), special.fdtrc(3, 8, b)),
        (special.chdtr(5, b * 4), special.chdtrc(5, b * 4)),
    )


@program(_samples)
def correlations(x, y):
    r, p = stats.pearsonr(x, y)
    less = stats.pearsonr(x, y, alternative="less").pvalue
    tied = stats.spearmanr(np.round(x), np.round(y)).pvalue
    return r, p, less, stats.pearsonr(x[:2], y[:2])[0], stats.spearmanr(x, y), tied


@program(_samples)
def lines_of_least_squares(x, y):
    slope, intercept, r, p, error = stats.linregress(x, y)
    found = stats.linregress(x, 3 * x + y)
    both = found.slope, found.intercept, found.rvalue, found.pvalue, found.stderr
    return slope, intercept, r, p, error, both


@program(_samples)
def ranks_of_values(x, y):
    tied = np.round(x * 2)
    kinds = [stats.rankdata(tied, m) for m in ("average", "min", "max", "dense", "ordinal")]
    return kinds, stats.rankdata(np.outer(x, y)[:3, :4], axis=1)


@program(_samples)
def tests_of_means(x, y):
    one, other = stats.ttest_ind(x, y), stats.ttest_ind(x, y[:9] + 1, equal_var=False)
    paired, single = stats.ttest_rel(x, y), stats.ttest_1samp(x, 0.3)
    found = [(t.statistic, t.pvalue) for t in (one, other, paired, single)]
    several = stats.f_oneway(x, y, x + y), stats.f_oneway(np.outer(x, y), np.outer(y, y))
    return found, several, stats.chisquare(np.abs(x) * 10)


@program(_samples)
def spreads(x, y):
    table = np.outer(x, y)
    scaled = stats.median_abs_deviation(table, axis=1, scale="normal")
    dense = x if not sparse.issparse(x) else y
    return stats.iqr(x), stats.median_abs_deviation(x), scaled, stats.iqr(table, axis=0), dense
