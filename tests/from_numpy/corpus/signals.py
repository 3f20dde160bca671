"""Signal processing."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("signal processing")


@program("blog", lambda rng, n: (rng.random(n),), 13, 16)
def dft_slow(x):
    """Compute the discrete Fourier Transform of the 1D array x"""
    x = np.asarray(x, dtype=float)
    N = x.shape[0]
    n = np.arange(N)
    k = n.reshape((N, 1))
    M = np.exp(-2j * np.pi * k * n / N)
    return np.dot(M, x)


@program("blog", lambda rng, n: (rng.random(n),), 8, 16)
def fft_vectorized(x):
    """A vectorized, non-recursive version of the Cooley-Tukey FFT"""
    x = np.asarray(x, dtype=float)
    N = x.shape[0]
    N_min = min(N, 4)
    n = np.arange(N_min)
    k = n[:, None]
    M = np.exp(-2j * np.pi * n * k / N_min)
    X = np.dot(M, x.reshape((N_min, -1)))
    while X.shape[0] < N:
        X_even = X[:, : X.shape[1] // 2]
        X_odd = X[:, X.shape[1] // 2 :]
        factor = np.exp(-1j * np.pi * np.arange(X.shape[0]) / X.shape[0])[:, None]
        X = np.vstack([X_even + factor * X_odd, X_even - factor * X_odd])
    return X.ravel()


@program("textbook", lambda rng, n, m: (rng.random(n), rng.random(m)), (13, 4), (20, 7))
def fir_filter(x, h):
    y = np.zeros(len(x))
    for n in range(len(x)):
        for k in range(len(h)):
            if n - k >= 0:
                y[n] += h[k] * x[n - k]
    return y, np.convolve(x, h), np.convolve(x, h, mode="same"), np.convolve(x, h, "valid")


@program("audio cookbook", lambda rng, n: (rng.random(n), 0.1), 12, 21)
def biquad_lowpass(x, fc, Q=0.7071):
    w0 = 2 * np.pi * fc
    alpha = np.sin(w0) / (2 * Q)
    b = np.array([(1 - np.cos(w0)) / 2, 1 - np.cos(w0), (1 - np.cos(w0)) / 2])
    a = np.array([1 + alpha, -2 * np.cos(w0), 1 - alpha])
    b, a = b / a[0], a / a[0]
    y = np.zeros_like(x)
    x1 = x2 = y1 = y2 = 0.0
    for n, xn in enumerate(x):
        yn = b[0] * xn + b[1] * x1 + b[2] * x2 - a[1] * y1 - a[2] * y2
        x2, x1 = x1, xn
        y2, y1 = y1, yn
        y[n] = yn
    return y


@program("blog", lambda rng, n: (rng.random(n), 8, 3), 40, 53)
def spectrogram(x, nperseg, hop):
    n_frames = 1 + (len(x) - nperseg) // hop
    idx = np.arange(nperseg)[None, :] + hop * np.arange(n_frames)[:, None]
    frames = x[idx] * np.hanning(nperseg)
    spec = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    return 10 * np.log10(spec.T + 1e-10)


@program("wikipedia", lambda rng, n: (rng.random(n), 3), 13, 20)
def goertzel(samples, k):
    N = len(samples)
    omega = 2 * np.pi * k / N
    coeff = 2 * np.cos(omega)
    s_prev = s_prev2 = 0.0
    for sample in samples:
        s = sample + coeff * s_prev - s_prev2
        s_prev2 = s_prev
        s_prev = s
    return s_prev2**2 + s_prev**2 - coeff * s_prev * s_prev2


@program("stackoverflow", lambda rng, n: (rng.normal(size=n),), 17, 30)
def zero_crossings(a):
    crossings = np.where(np.diff(np.signbit(a)))[0]
    rate = len(crossings) / (len(a) - 1)
    return crossings, rate


@program("stackoverflow", lambda rng, n: (rng.random(n), 0.5), 19, 33)
def find_peaks(x, threshold):
    mask = np.r_[False, x[1:] > x[:-1]] & np.r_[x[:-1] > x[1:], False] & (x > threshold)
    peaks = np.flatnonzero(mask)
    return peaks, x[peaks]


@program("textbook", lambda rng, n: (rng.random(n),), 9, 14)
def resample(x, up=2, down=3):
    stuffed = np.zeros(len(x) * up)
    stuffed[::up] = x
    kernel = np.array([0.5, 1.0, 0.5])
    smooth = np.convolve(stuffed, kernel, mode="same")
    reversed_back = smooth[::-1][::-1]
    return reversed_back[::down], x[::-1]


@program("textbook", lambda rng, n: (rng.random(n), 3), 8, 16)
def haar_wavelet(x, levels):
    out = x.astype(float).copy()
    n = len(out)
    for _ in range(levels):
        if n % 2:
            break
        even, odd = out[:n:2].copy(), out[1:n:2].copy()
        out[: n // 2] = (even + odd) / np.sqrt(2)
        out[n // 2 : n] = (even - odd) / np.sqrt(2)
        n //= 2
    return out


@program("scipy", lambda rng, n: (rng.random(n),), 13, 16)
def hilbert_envelope(x):
    N = x.size
    Xf = np.fft.fft(x)
    h = np.zeros(N)
    if N % 2 == 0:
        h[0] = h[N // 2] = 1
        h[1 : N // 2] = 2
    else:
        h[0] = 1
        h[1 : (N + 1) // 2] = 2
    analytic = np.fft.ifft(Xf * h)
    return np.abs(analytic), np.unwrap(np.angle(analytic))


@program("blog", lambda rng, n: (rng.random(n), 0.21), 15, 20)
def fft_lowpass(signal, cutoff):
    spectrum = np.fft.fft(signal)
    freq = np.fft.fftfreq(len(signal))
    spectrum[np.abs(freq) > cutoff] = 0
    filtered = np.fft.ifft(spectrum)
    return filtered.real


@program("adaptive filters course", lambda rng, n: (rng.normal(size=n), rng.normal(size=n)), 20, 31)
def lms(x, d, n_taps=4, mu=0.05):
    w = np.zeros(n_taps)
    e = np.zeros(len(x))
    for n in range(n_taps, len(x)):
        u = x[n : n - n_taps : -1]
        e[n] = d[n] - w @ u
        w += mu * e[n] * u
    return w, e


@program("SciPy cookbook", lambda rng, n: (rng.normal(-0.37727, 0.1, n),), 20, 50)
def kalman_constant(z, Q=1e-5, R=0.1**2):
    sz = (z.size,)
    estimate, P = np.zeros(sz), np.zeros(sz)
    prior, P_prior, gain = (np.zeros(sz) for _ in range(3))
    P[0] = 1.0
    for k in range(1, z.size):
        # predict
        prior[k] = estimate[k - 1]
        P_prior[k] = P[k - 1] + Q
        # correct
        gain[k] = P_prior[k] / (P_prior[k] + R)
        estimate[k] = prior[k] + gain[k] * (z[k] - prior[k])
        P[k] = (1 - gain[k]) * P_prior[k]
    return estimate, P_prior


@program("robotics blog", lambda rng, t: (rng.normal(size=(t, 2)), 0.1), 6, 11)
def kalman_tracking(zs, dt):
    F = np.array([[1, 0, dt, 0], [0, 1, 0, dt], [0, 0, 1, 0], [0, 0, 0, 1]])
    H = np.array([[1, 0, 0, 0], [0, 1, 0, 0]])
    Q = 0.01 * np.eye(4)
    R = 0.1 * np.eye(2)
    x = np.zeros((4, 1))
    P = np.eye(4) * 10
    track = []
    for z in zs:
        x = F @ x
        P = F @ P @ F.T + Q
        y = z.reshape(2, 1) - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ y
        P = (np.eye(4) - K @ H) @ P
        track.append(x[:2].flatten())
    return np.array(track), P


@program(
    "textbook", lambda rng, n, m: (rng.integers(0, 256, (n, m)).astype(float),), (8, 8), (5, 7)
)
def dct2(block):
    def dct_matrix(N):
        k, n = np.mgrid[:N, :N]
        D = np.sqrt(2 / N) * np.cos(np.pi * (2 * n + 1) * k / (2 * N))
        D[0, :] /= np.sqrt(2)
        return D

    M, N = block.shape
    C = dct_matrix(M) @ (block - 128) @ dct_matrix(N).T
    quantised = np.round(C / 16).astype(int)
    quantised[np.abs(quantised) < 2] = 0
    return C, quantised


@program("audio blog", lambda rng, n: (rng.uniform(-1.2, 1.2, n),), 11, 17)
def pcm16(x):
    clipped = np.clip(x, -1, 1)
    pcm = (clipped * 32767).astype(np.int16)
    back = pcm.astype(np.float32) / 32768.0
    mu = 255
    compressed = np.sign(clipped) * np.log1p(mu * np.abs(clipped)) / np.log1p(mu)
    codes = np.floor((compressed + 1) / 2 * mu + 0.5).astype(np.uint8)
    return pcm, back, codes


@program("stackoverflow", lambda rng, n: (rng.random(n), rng.random(n)), 13, 18)
def time_delay(a, b):
    corr = np.correlate(a - a.mean(), b - b.mean(), mode="full")
    lag = corr.argmax() - (len(b) - 1)
    spectral = np.fft.ifft(np.fft.fft(a) * np.conj(np.fft.fft(b))).real
    return lag, corr, spectral


@program(
    "radar blog", lambda rng, n, m: (rng.random((n, m)) + 1j * rng.random((n, m)),), (7, 8), (13, 6)
)
def range_doppler(pulses):
    window = np.hamming(pulses.shape[0])[:, np.newaxis]
    rd = np.fft.fftshift(np.fft.fft(pulses * window, axis=0), axes=0)
    power = 20 * np.log10(np.abs(rd) / np.abs(rd).max())
    row, col = np.unravel_index(np.argmax(power), power.shape)
    return power, row, col
