"""Finance: prices, risks and series of them."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("finance")


def prices(rng, *shape):
    return 100 * np.exp(np.cumsum(0.02 * rng.normal(size=shape), axis=0))


def cnd(d):
    A1, A2, A3, A4, A5 = 0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429
    RSQRT2PI = 0.39894228040143267793994605993438
    K = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    ret_val = RSQRT2PI * np.exp(-0.5 * d * d) * (K * (A1 + K * (A2 + K * (A3 + K * (A4 + K * A5)))))
    return np.where(d > 0, 1.0 - ret_val, ret_val)


@program(
    "numba",
    lambda rng, n: (
        rng.uniform(5, 30, n),
        rng.uniform(1, 100, n),
        rng.uniform(0.25, 10, n),
        0.02,
        0.3,
    ),
    13,
    20,
)
def black_scholes(stockPrice, optionStrike, optionYears, Riskfree, Volatility):
    S = stockPrice
    X = optionStrike
    T = optionYears
    R = Riskfree
    V = Volatility
    sqrtT = np.sqrt(T)
    d1 = (np.log(S / X) + (R + 0.5 * V * V) * T) / (V * sqrtT)
    d2 = d1 - V * sqrtT
    cndd1 = cnd(d1)
    cndd2 = cnd(d2)
    expRT = np.exp(-R * T)
    callResult = S * cndd1 - X * expRT * cndd2
    putResult = X * expRT * (1.0 - cndd2) - S * (1.0 - cndd1)
    return callResult, putResult


@program(
    "Python for Finance",
    lambda rng, m, n: (100.0, 105.0, 1.0, 0.05, 0.2, rng.standard_normal((m, n))),
    (12, 17),
    (7, 30),
)
def monte_carlo_call(S0, K, T, r, sigma, z):
    M, I = z.shape
    dt = T / M
    S = np.zeros((M + 1, I))
    S[0] = S0
    for t in range(1, M + 1):
        S[t] = S[t - 1] * np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z[t - 1])
    C0 = np.exp(-r * T) * np.sum(np.maximum(S[-1] - K, 0)) / I
    return C0, S


@program("quantlib blog", lambda rng, n: (100, 100, 1.0, 0.06, n, 1.1), 5, 9)
def american_put_tree(K, S0, T, r, N, u):
    d = 1 / u
    dt = T / N
    q = (np.exp(r * dt) - d) / (u - d)
    disc = np.exp(-r * dt)
    S = S0 * d ** (np.arange(N, -1, -1)) * u ** (np.arange(0, N + 1, 1))
    C = np.maximum(0, K - S)
    for i in np.arange(N - 1, -1, -1):
        S = S0 * d ** (np.arange(i, -1, -1)) * u ** (np.arange(0, i + 1, 1))
        C[: i + 1] = disc * (q * C[1 : i + 2] + (1 - q) * C[0 : i + 1])
        C = C[:-1]
        C = np.maximum(C, K - S)
    return C[0]


@program("stackoverflow", lambda rng, n: (prices(rng, n),), 15, 30)
def max_drawdown(xs):
    i = np.argmax(np.maximum.accumulate(xs) - xs)  # end of the period
    j = np.argmax(xs[:i]) if i > 0 else 0  # start of period
    return xs[j] - xs[i], i, j


@program("quant blog", lambda rng, n: (prices(rng, n),), 20, 31)
def sharpe_ratio(p, rf=0.01, periods=252):
    returns = np.diff(p) / p[:-1]
    excess = returns - rf / periods
    sharpe = np.sqrt(periods) * excess.mean() / excess.std(ddof=1)
    downside = excess[excess < 0]
    sortino = np.sqrt(periods) * excess.mean() / np.sqrt((downside**2).mean())
    return sharpe, sortino


@program(
    "Python for Finance",
    lambda rng, n, m: (prices(rng, n, m), np.full(m, 1.0 / m)),
    (15, 4),
    (9, 5),
)
def portfolio(data, weights):
    rets = np.log(data[1:] / data[:-1])
    port_return = np.sum(rets.mean(axis=0) * weights) * 252
    port_variance = np.dot(weights.T, np.dot(np.cov(rets.T) * 252, weights))
    assert port_variance >= 0, "variance is negative"
    return port_return, np.sqrt(port_variance)


@program("quant blog", lambda rng, n: (prices(rng, n),), 30, 41)
def macd(close, fast=5, slow=9, signal=4):
    def ema(x, span):
        alpha = 2 / (span + 1)
        out = np.zeros_like(x)
        out[0] = x[0]
        for i in range(1, len(x)):
            out[i] = alpha * x[i] + (1 - alpha) * out[i - 1]
        return out

    macd_line = ema(close, fast) - ema(close, slow)
    signal_line = ema(macd_line, signal)
    hist = macd_line - signal_line
    crossings = np.where(np.sign(hist[1:]) != np.sign(hist[:-1]), 1, 0)
    return macd_line, signal_line, crossings.sum()


@program("matplotlib gallery", lambda rng, n: (prices(rng, n), 5), 15, 22)
def relative_strength(prices, n=14):
    change = np.diff(prices)
    first = change[: n + 1]
    up = first[first >= 0].sum() / n
    down = -first[first < 0].sum() / n
    rsi = np.zeros_like(prices)
    rsi[:n] = 100.0 - 100.0 / (1.0 + up / down)
    for i in range(n, len(prices)):
        delta = change[i - 1]  # differences are one shorter
        if delta > 0:
            gain, fall = delta, 0.0
        else:
            gain = 0.0
            fall = -delta
        up = (up * (n - 1) + gain) / n
        down = (down * (n - 1) + fall) / n
        rsi[i] = 100.0 - 100.0 / (1.0 + up / down)
    return rsi


@program("quant blog", lambda rng, n: (prices(rng, n), 5), 14, 21)
def bollinger_bands(price, window, k=2.0):
    windows = np.lib.stride_tricks.sliding_window_view(price, window)
    mid = windows.mean(axis=-1)
    band = k * windows.std(axis=-1)
    position = (price[window - 1 :] - (mid - band)) / (2 * band)
    return mid, mid + band, mid - band, position


@program("textbook", lambda rng, n: (np.append([-100.0], rng.uniform(10, 50, n)),), 5, 8)
def internal_rate_of_return(cashflows, guess=0.1, tol=1e-9):
    t = np.arange(len(cashflows))
    rate = guess
    for _ in range(100):
        f = np.sum(cashflows / (1 + rate) ** t)
        df = np.sum(-t * cashflows / (1 + rate) ** (t + 1))
        step = f / df
        rate -= step
        if abs(step) < tol:
            return rate
    return np.nan


@program("stackoverflow", lambda rng, n: (1000.0, 0.05, n), 6, 12)
def amortization(principal, annual_rate, months):
    r = annual_rate / 12
    payment = principal * r / (1 - (1 + r) ** -months)
    schedule = np.zeros((months, 4))
    balance = principal
    for month in range(months):
        interest = balance * r
        balance -= payment - interest
        schedule[month] = month + 1, interest, payment - interest, balance
    return schedule


@program("quant blog", lambda rng, n: (rng.normal(0, 0.02, n),), 15, 25)
def garch_likelihood(eps, omega=1e-5, alpha=0.1, beta=0.85):
    sigma2 = np.zeros(eps.size)
    sigma2[0] = np.var(eps)
    for t in range(1, eps.size):
        sigma2[t] = omega + alpha * eps[t - 1] ** 2 + beta * sigma2[t - 1]
    ll = -0.5 * (np.log(2 * np.pi) + np.log(sigma2) + eps**2 / sigma2)
    return ll.sum(), sigma2


@program(
    "Python for Finance",
    lambda rng, m, n: (36.0, 40.0, rng.standard_normal((m, n))),
    (5, 25),
    (7, 40),
)
def longstaff_schwartz(S0, K, dW, r=0.06, sigma=0.2, T=1.0):
    steps, paths = dW.shape
    dt = T / steps
    df = np.exp(-r * dt)
    S = S0 * np.exp(np.cumsum((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * dW, axis=0))
    h = np.maximum(K - S, 0)
    V = h[-1]
    for t in range(steps - 2, -1, -1):
        reg = np.polyfit(S[t], V * df, 2)
        C = np.polyval(reg, S[t])
        V = np.where(h[t] > C, h[t], V * df)
    return df * V.mean()


@program("risk course", lambda rng, n: (rng.normal(0, 0.02, n), 0.95), 40, 61)
def value_at_risk(returns, level):
    ordered = np.sort(returns)
    index = int((1 - level) * len(ordered))
    var = -ordered[index]
    cvar = -ordered[: index + 1].mean()
    print(f"VaR at {level:.0%}: {var:.4f}, expected shortfall {cvar:.4f}")
    return var, cvar
