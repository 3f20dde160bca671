"""Filters of images and signals, written out as in tutorials."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("pictures and sounds")


def convolve2d(image, kernel, padding="same"):
    kh, kw = kernel.shape
    if padding == "same":
        ph, pw = kh // 2, kw // 2
        image = np.pad(image, ((ph, ph), (pw, pw)), mode="edge")
    out = np.zeros((image.shape[0] - kh + 1, image.shape[1] - kw + 1))
    for i in range(kh):
        for j in range(kw):
            out += kernel[i, j] * image[i : i + out.shape[0], j : j + out.shape[1]]
    return out


def gaussian_kernel(size, sigma=1):
    size = int(size) // 2
    x, y = np.mgrid[-size : size + 1, -size : size + 1]
    normal = 1 / (2.0 * np.pi * sigma**2)
    return np.exp(-((x**2 + y**2) / (2.0 * sigma**2))) * normal


@program("medium", lambda rng, n: (rng.random((n, n + 1)) * 255,), 7, 10)
def canny(img):
    smoothed = convolve2d(img, gaussian_kernel(5, 1.4))
    Kx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    Ky = np.array([[1, 2, 1], [0, 0, 0], [-1, -2, -1]], np.float32)
    Ix, Iy = convolve2d(smoothed, Kx), convolve2d(smoothed, Ky)
    G = np.hypot(Ix, Iy)
    G = G / G.max() * 255
    D = np.arctan2(Iy, Ix)
    M, N = G.shape
    Z = np.zeros((M, N), dtype=np.int32)
    angle = D * 180.0 / np.pi
    angle[angle < 0] += 180
    for i in range(1, M - 1):
        for j in range(1, N - 1):
            q = 255
            r = 255
            if (0 <= angle[i, j] < 22.5) or (157.5 <= angle[i, j] <= 180):
                q = G[i, j + 1]
                r = G[i, j - 1]
            elif 22.5 <= angle[i, j] < 67.5:
                q = G[i + 1, j - 1]
                r = G[i - 1, j + 1]
            elif 67.5 <= angle[i, j] < 112.5:
                q = G[i + 1, j]
                r = G[i - 1, j]
            elif 112.5 <= angle[i, j] < 157.5:
                q = G[i - 1, j - 1]
                r = G[i + 1, j + 1]
            if (G[i, j] >= q) and (G[i, j] >= r):
                Z[i, j] = G[i, j]
            else:
                Z[i, j] = 0
    highThreshold = Z.max() * 0.5
    lowThreshold = highThreshold * 0.3
    res = np.zeros((M, N), dtype=np.int32)
    weak, strong = np.int32(25), np.int32(255)
    strong_i, strong_j = np.where(Z >= highThreshold)
    weak_i, weak_j = np.where((Z <= highThreshold) & (Z >= lowThreshold))
    res[strong_i, strong_j] = strong
    res[weak_i, weak_j] = weak
    for i in range(1, M - 1):
        for j in range(1, N - 1):
            if res[i, j] == weak:
                if (res[i - 1 : i + 2, j - 1 : j + 2] == strong).any():
                    res[i, j] = strong
                else:
                    res[i, j] = 0
    return res


@program("blog", lambda rng, n: (rng.random((n, n)) > 0.6, 20), 8, 10)
def hough_lines(img, steps):
    thetas = np.deg2rad(np.arange(-90.0, 90.0, 180 / steps))
    width, height = img.shape
    diag_len = int(round(np.sqrt(width * width + height * height)))
    cos_t, sin_t = np.cos(thetas), np.sin(thetas)
    num_thetas = len(thetas)
    accumulator = np.zeros((2 * diag_len, num_thetas), dtype=np.uint8)
    y_idxs, x_idxs = np.nonzero(img)
    for i in range(len(x_idxs)):
        x = x_idxs[i]
        y = y_idxs[i]
        for t_idx in range(num_thetas):
            rho = diag_len + int(round(x * cos_t[t_idx] + y * sin_t[t_idx]))
            accumulator[rho, t_idx] += 1
    idx = np.argmax(accumulator)
    return accumulator.max(), thetas[idx % accumulator.shape[1]]


@program("blog", lambda rng, n: (rng.random((n, n)),), 8, 11)
def harris_corners(img):
    Iy, Ix = np.gradient(img)
    Ixx, Ixy, Iyy = Ix**2, Iy * Ix, Iy**2
    k = 0.04
    offset = 1
    height, width = img.shape
    R = np.zeros_like(img)
    for y in range(offset, height - offset):
        for x in range(offset, width - offset):
            Sxx = Ixx[y - offset : y + offset + 1, x - offset : x + offset + 1].sum()
            Syy = Iyy[y - offset : y + offset + 1, x - offset : x + offset + 1].sum()
            Sxy = Ixy[y - offset : y + offset + 1, x - offset : x + offset + 1].sum()
            det = (Sxx * Syy) - (Sxy**2)
            trace = Sxx + Syy
            R[y, x] = det - k * (trace**2)
    corners = np.argwhere(R > 0.5 * R.max())
    return R, len(corners)


@program("blog", lambda rng, n: (rng.random((n, n + 1)), 2.0, 0.2), 6, 8)
def bilateral(image, sigma_s, sigma_r):
    radius = 1
    h, w = image.shape
    padded = np.pad(image, radius, mode="reflect")
    out = np.zeros_like(image)
    norm = np.zeros_like(image)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            shifted = padded[radius + dy : radius + dy + h, radius + dx : radius + dx + w]
            weight = np.exp(-(dx**2 + dy**2) / (2 * sigma_s**2)) * np.exp(
                -((shifted - image) ** 2) / (2 * sigma_r**2)
            )
            out += weight * shifted
            norm += weight
    return out / norm


@program("blog", lambda rng, n: (rng.integers(0, 256, (n, n, 3)).astype(np.uint8),), 5, 7)
def sepia_and_quantise(image):
    matrix = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])
    sepia = np.clip(image @ matrix.T, 0, 255).astype(np.uint8)
    levels = (image // 64) * 64 + 32
    r, g, b = image[..., 0], image[..., 1], image[..., 2]
    luma = (0.299 * r + 0.587 * g + 0.114 * b).astype(np.uint8)
    inverted = 255 - image
    blended = (0.5 * image + 0.5 * sepia).round().astype("uint8")
    return sepia, levels, luma, inverted, blended


@program("blog", lambda rng, n: (rng.random((n, n)) > 0.5,), 7, 9)
def distance_transform(binary):
    h, w = binary.shape
    d = np.where(binary, np.inf, 0.0)
    for i in range(h):
        for j in range(w):
            if i > 0:
                d[i, j] = min(d[i, j], d[i - 1, j] + 1)
            if j > 0:
                d[i, j] = min(d[i, j], d[i, j - 1] + 1)
    for i in range(h - 1, -1, -1):
        for j in range(w - 1, -1, -1):
            if i < h - 1:
                d[i, j] = min(d[i, j], d[i + 1, j] + 1)
            if j < w - 1:
                d[i, j] = min(d[i, j], d[i, j + 1] + 1)
    return d


@program("blog", lambda rng, n: (rng.random((n, n)), 30.0), 7, 9)
def rotate_nearest(image, degrees):
    angle = np.radians(degrees)
    c, s = np.cos(angle), np.sin(angle)
    h, w = image.shape
    cy, cx = (h - 1) / 2, (w - 1) / 2
    ys, xs = np.indices((h, w))
    sx = np.round(c * (xs - cx) + s * (ys - cy) + cx).astype(int)
    sy = np.round(-s * (xs - cx) + c * (ys - cy) + cy).astype(int)
    valid = (sx >= 0) & (sx < w) & (sy >= 0) & (sy < h)
    out = np.zeros_like(image)
    out[valid] = image[sy[valid], sx[valid]]
    return out


@program("textbook", lambda rng, n: (rng.random(n), 3), 8, 16)
def daubechies_wavelet(signal, levels):
    s3 = np.sqrt(3)
    h = np.array([1 + s3, 3 + s3, 3 - s3, 1 - s3]) / (4 * np.sqrt(2))
    g = np.array([h[3], -h[2], h[1], -h[0]])
    out = signal.copy()
    n = len(signal)
    while n >= 4:
        temp = np.zeros(n)
        half = n >> 1
        for i in range(half):
            for k in range(4):
                temp[i] += h[k] * out[(2 * i + k) % n]
                temp[i + half] += g[k] * out[(2 * i + k) % n]
        out[:n] = temp
        n >>= 1
    return out


@program("textbook", lambda rng, n: (rng.random(n), 4, 2), 13, 20)
def short_time_fourier(x, size, hop):
    window = np.hanning(size)
    frames = [x[i : i + size] * window for i in range(0, len(x) - size + 1, hop)]
    spectrum = np.array([np.fft.rfft(f) for f in frames])
    magnitude = np.abs(spectrum)
    db = 20 * np.log10(np.maximum(magnitude, 1e-10))
    back = np.zeros(len(x))
    for k, f in enumerate(np.fft.irfft(spectrum, n=size)):
        back[k * hop : k * hop + size] += f
    return db, back


@program("textbook", lambda rng, n: (rng.random(n), 0.05, 0.4), 20)
def windowed_sinc_filter(x, fL, fH):
    N = 9
    n = np.arange(N)
    hlpf = np.sinc(2 * fH * (n - (N - 1) / 2))
    hlpf *= np.blackman(N)
    hlpf = hlpf / np.sum(hlpf)
    hhpf = np.sinc(2 * fL * (n - (N - 1) / 2)) * np.blackman(N)
    hhpf = -hhpf / np.sum(hhpf)
    hhpf[(N - 1) // 2] += 1
    h = np.convolve(hlpf, hhpf)
    return np.convolve(x, h), np.abs(np.fft.fft(h, 32))[:17]


@program("cookbook", lambda rng, n: (rng.random(n), 5), 12, 17)
def smooth(x, window_len):
    if x.ndim != 1:
        raise ValueError("smooth only accepts 1 dimension arrays.")
    if x.size < window_len:
        raise ValueError("Input vector needs to be bigger than window size.")
    s = np.r_[x[window_len - 1 : 0 : -1], x, x[-2 : -window_len - 1 : -1]]
    results = []
    for window in ["flat", "hanning", "hamming"]:
        if window == "flat":
            w = np.ones(window_len, "d")
        else:
            w = getattr(np, window)(window_len)
        results.append(np.convolve(w / w.sum(), s, mode="valid"))
    return results


@program("cookbook", lambda rng, n: (rng.random(n), 5, 2), 12, 17)
def savitzky_golay(y, window_size, order):
    order_range = range(order + 1)
    half_window = (window_size - 1) // 2
    b = np.array([[k**i for i in order_range] for k in range(-half_window, half_window + 1)])
    m = np.linalg.pinv(b)[0]
    firstvals = y[0] - np.abs(y[1 : half_window + 1][::-1] - y[0])
    lastvals = y[-1] + np.abs(y[-half_window - 1 : -1][::-1] - y[-1])
    y = np.concatenate((firstvals, y, lastvals))
    return np.convolve(m[::-1], y, mode="valid")


@program("textbook", lambda rng, n: (rng.random(n), rng.random(n)), 8, 12)
def dynamic_filters(x, d):
    b, a = [0.2, 0.3, 0.1], [1.0, -0.4, 0.1]
    y = np.zeros_like(x)
    for n in range(len(x)):
        y[n] = sum(b[k] * x[n - k] for k in range(len(b)) if n - k >= 0)
        y[n] -= sum(a[k] * y[n - k] for k in range(1, len(a)) if n - k >= 0)
    w = np.zeros(3)
    e = np.zeros(len(x))
    P = np.eye(3) / 0.1
    for n in range(3, len(x)):
        u = x[n : n - 3 : -1]
        g = P @ u / (0.99 + u @ P @ u)
        e[n] = d[n] - w @ u
        w = w + g * e[n]
        P = (P - np.outer(g, u) @ P) / 0.99
    return y, w, e
