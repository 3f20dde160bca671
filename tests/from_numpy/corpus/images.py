"""Image processing."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("image processing")


def photo(rng, *shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


@program("stackoverflow", lambda rng, n, m: (photo(rng, n, m, 3),), (7, 13), (12, 5))
def rgb2gray(rgb):
    return np.dot(rgb[..., :3], [0.2989, 0.5870, 0.1140])


@program("blog", lambda rng, n, m: (photo(rng, n, m).astype(float),), (7, 13), (12, 5))
def sobel(image):
    Gx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    Gy = Gx.T
    h, w = image.shape
    gx = np.zeros((h - 2, w - 2))
    gy = np.zeros((h - 2, w - 2))
    for i in range(h - 2):
        for j in range(w - 2):
            patch = image[i : i + 3, j : j + 3]
            gx[i, j] = np.sum(Gx * patch)
            gy[i, j] = np.sum(Gy * patch)
    magnitude = np.hypot(gx, gy)
    magnitude *= 255.0 / magnitude.max()
    return magnitude, np.arctan2(gy, gx)


@program("stackoverflow", lambda rng, n, m: (photo(rng, n, m), 2), (9, 13), (12, 7))
def box_blur(img, radius):
    integral = np.zeros((img.shape[0] + 1, img.shape[1] + 1), dtype=np.int64)
    integral[1:, 1:] = img.cumsum(axis=0).cumsum(axis=1)
    d = 2 * radius + 1
    total = integral[d:, d:] - integral[:-d, d:] - integral[d:, :-d] + integral[:-d, :-d]
    return (total // (d * d)).astype(img.dtype)


@program("blog", lambda rng, n, m: (photo(rng, n, m).astype(np.float32), 1.0), (9, 13), (11, 7))
def gaussian_blur(image, sigma):
    radius = int(3 * sigma)
    ax = np.arange(-radius, radius + 1)
    kernel = np.exp(-(ax**2) / (2 * sigma**2))
    kernel /= kernel.sum()
    padded = np.pad(image, radius, mode="reflect")
    rows = np.zeros_like(padded)
    for k, w in zip(range(-radius, radius + 1), kernel):
        rows += w * np.roll(padded, k, axis=1)
    out = sum(w * np.roll(rows, k, axis=0) for k, w in zip(range(-radius, radius + 1), kernel))
    return out[radius:-radius, radius:-radius]


@program("blog", lambda rng, n, m: (photo(rng, n, m),), (7, 13), (10, 10))
def histogram_equalization(img):
    hist, bins = np.histogram(img.flatten(), 256, [0, 256])
    cdf = hist.cumsum()
    cdf_m = np.ma.filled(np.ma.masked_equal(cdf, 0), 0)
    low = cdf[cdf > 0].min()
    lut = np.clip(np.round((cdf_m - low) * 255 / (img.size - low)), 0, 255).astype("uint8")
    return lut[img]


@program("wikipedia", lambda rng, n, m: (photo(rng, n, m),), (7, 13), (12, 12))
def otsu_threshold(gray):
    hist = np.bincount(gray.ravel(), minlength=256)
    levels = np.arange(256)
    best, best_variance = -1, -1.0
    for t in range(1, 255):
        below, above = hist[:t].sum(), hist[t:].sum()
        if below == 0 or above == 0:
            continue
        mean_below = np.sum(levels[:t] * hist[:t]) / below
        mean_above = np.sum(levels[t:] * hist[t:]) / float(above)
        variance = below / gray.size * (above / gray.size) * (mean_below - mean_above) ** 2
        if variance > best_variance:
            best, best_variance = t, variance
    binary = gray.copy()
    binary[gray > best] = 255
    binary[gray < best] = 0
    return binary, best


@program("repository", lambda rng, n, m: (rng.random((n, m)) < 0.4,), (7, 13), (12, 5))
def binary_opening(mask):
    def erode(m):
        p = np.pad(m, 1, constant_values=True)
        return p[1:-1, 1:-1] & p[:-2, 1:-1] & p[2:, 1:-1] & p[1:-1, :-2] & p[1:-1, 2:]

    def dilate(m):
        p = np.pad(m, 1)
        return p[1:-1, 1:-1] | p[:-2, 1:-1] | p[2:, 1:-1] | p[1:-1, :-2] | p[1:-1, 2:]

    opened = dilate(erode(mask))
    boundary = mask ^ erode(mask)
    return opened, boundary, np.argwhere(boundary).shape[0]


@program("numpy quickstart", lambda rng, n, m: (photo(rng, n, m, 3),), (7, 13), (6, 4))
def flips_and_crops(img):
    mirrored = img[:, ::-1]
    upside = np.flipud(img)
    bgr = img[..., ::-1]
    rotated = np.rot90(img)
    h, w, _ = img.shape
    crop = img[h // 4 : -h // 4, w // 4 : -w // 4, 1]
    return mirrored, upside, bgr, rotated, crop, img.transpose(2, 0, 1)


@program("stackoverflow", lambda rng, n, m: (photo(rng, 2 * n, 3 * m),), (4, 5), (7, 3))
def downsample(img):
    h, w = img.shape
    mean = img.reshape(h // 2, 2, w // 3, 3).mean(axis=(1, 3))
    peak = img.reshape(h // 2, 2, w // 3, 3).max(3).max(1)
    zoomed = np.repeat(np.repeat(img, 2, axis=0), 2, axis=1)
    return mean, peak, zoomed


@program("stackoverflow", lambda rng, n, m: (photo(rng, n, m).astype(float), 9, 6), (7, 13), (5, 4))
def bilinear_resize(image, height, width):
    h, w = image.shape
    r, c = np.divmod(np.arange(height * width), width)
    ys, xs = r * (h - 1) / (height - 1), c * (w - 1) / (width - 1)
    y0, x0 = np.floor(ys).astype("int32"), np.floor(xs).astype("int32")
    y1, x1 = np.minimum(y0 + 1, h - 1), np.minimum(x0 + 1, w - 1)
    fy, fx = ys - y0, xs - x0
    flat = image.ravel()
    upper = flat[y0 * w + x0] * (1 - fx) + flat[y0 * w + x1] * fx
    lower = image[y1, x0] * (1 - fx) + image[y1, x1] * fx
    return (upper * (1 - fy) + lower * fy).reshape(height, width)


@program("blog", lambda rng, n, m: (photo(rng, n, m),), (7, 13), (9, 5))
def median_filter(img):
    out = img.copy()
    stack = np.stack(
        [
            img[i : img.shape[0] - 2 + i, j : img.shape[1] - 2 + j]
            for i in range(3)
            for j in range(3)
        ]
    )
    out[1:-1, 1:-1] = np.median(stack, axis=0)
    return out


@program("wikipedia", lambda rng, n, m: (photo(rng, n, m).astype(np.float64),), (6, 9), (8, 5))
def floyd_steinberg(pixels):
    h, w = pixels.shape
    for y in range(h):
        for x in range(w):
            old = pixels[y, x]
            new = 255 * np.floor(old / 128)
            pixels[y, x] = new
            err = old - new
            if x + 1 < w:
                pixels[y, x + 1] += err * 7 / 16
            if (y + 1 < h) and (x + 1 < w):
                pixels[y + 1, x + 1] += err * 1 / 16
            if y + 1 < h:
                pixels[y + 1, x] += err * 5 / 16
            if (x - 1 >= 0) and (y + 1 < h):
                pixels[y + 1, x - 1] += err * 3 / 16
    return pixels


@program(
    "stackoverflow",
    lambda rng, n, m: (photo(rng, n, m, 4), photo(rng, n, m, 3), 2.2),
    (7, 5),
    (4, 9),
)
def alpha_blend(fg, bg, gamma):
    alpha = fg[..., 3:] / 255.0
    blended = fg[..., :3] * alpha + bg * (1 - alpha)
    corrected = (255 * (blended / 255) ** (1 / gamma)).astype(np.uint8)
    brighter = np.clip(fg[:, :, 0].astype(np.int16) + 40, 0, 255).astype(np.uint8)
    inverted = 255 - bg
    return corrected, brighter, inverted, fg[:, :, 0] + fg[:, :, 1]


@program("stackoverflow", lambda rng, n, m: (rng.random((n, m, 3)),), (5, 7), (9, 4), warns=True)
def rgb_to_hsv(rgb):
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    maxc = np.max(rgb, axis=-1)
    minc = np.min(rgb, axis=-1)
    v = maxc
    s = (maxc - minc) / maxc
    rc = (maxc - r) / (maxc - minc)
    gc = (maxc - g) / (maxc - minc)
    bc = (maxc - b) / (maxc - minc)
    h = 4.0 + gc - rc
    h[g == maxc] = 2.0 + rc[g == maxc] - bc[g == maxc]
    h[r == maxc] = bc[r == maxc] - gc[r == maxc]
    h[minc == maxc] = 0.0
    h = (h / 6.0) % 1.0
    return np.dstack((h, s, v))


@program(
    "stackoverflow", lambda rng, n, m: (rng.random((n, m)), rng.random((3, 2))), (7, 9), (8, 5)
)
def template_match(image, template):
    windows = np.lib.stride_tricks.sliding_window_view(image, template.shape)
    ssd = ((windows - template) ** 2).sum(axis=(-1, -2))
    best = np.unravel_index(ssd.argmin(), ssd.shape)
    return ssd, best


@program("blog", lambda rng, n, m: (rng.random((n, m)),), (7, 13), (9, 6))
def perona_malik(img, niter=4, kappa=0.3, gamma=0.15):
    u = img.copy()
    down, right = np.zeros_like(u), np.zeros_like(u)
    for _ in range(niter):
        down[:-1, :] = np.diff(u, axis=0)
        right[:, :-1] = np.diff(u, axis=1)
        flux_y = np.exp(-((down / kappa) ** 2.0)) * down
        flux_x = right / (1.0 + (right / kappa) ** 2.0)
        divergence = flux_x + flux_y
        divergence[1:, :] -= flux_y[:-1, :]
        divergence[:, 1:] -= flux_x[:, :-1]
        u += gamma * divergence
    return u


@program("blog", lambda rng, n, m: (rng.random((n, m)),), (6, 7), (9, 5))
def carve_seam(energy):
    h, w = energy.shape
    cost = energy.copy()
    come_from = np.zeros_like(cost, dtype=int)
    for y in range(1, h):
        for x in range(w):
            lo = max(x - 1, 0)
            k = np.argmin(cost[y - 1, lo : x + 2])
            come_from[y, x] = lo + k
            cost[y, x] += cost[y - 1, lo + k]
    keep = np.ones((h, w), dtype=bool)
    x = np.argmin(cost[-1])
    for y in reversed(range(h)):
        keep[y, x] = False
        x = come_from[y, x]
    return energy[keep].reshape((h, w - 1))


@program("100 numpy exercises", lambda rng, n: (n,), 8, 11)
def checkerboard_vignette(n):
    Z = np.zeros((n, n), dtype=int)
    Z[1::2, ::2] = 1
    Z[::2, 1::2] = 1
    y, x = np.mgrid[-1 : 1 : n * 1j, -1 : 1 : n * 1j]
    return Z * np.exp(-(x**2 + y**2))


@program("blog", lambda rng, n, m: (photo(rng, n, m).astype(float),), (7, 9), (8, 6))
def canny_suppression(G):
    h, w = G.shape
    gy, gx = np.gradient(G)
    angle = np.rad2deg(np.arctan2(gy, gx)) % 180
    Z = np.zeros((h, w), dtype=np.int32)
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            a = angle[y, x]
            if (0 <= a < 22.5) or (157.5 <= a <= 180):
                before, after = G[y, x - 1], G[y, x + 1]
            elif 22.5 <= a < 67.5:
                before, after = G[y + 1, x - 1], G[y - 1, x + 1]
            elif 67.5 <= a < 112.5:
                before, after = G[y + 1, x], G[y - 1, x]
            else:
                before, after = G[y - 1, x - 1], G[y + 1, x + 1]
            if G[y, x] >= before and G[y, x] >= after:
                Z[y, x] = G[y, x]
    return Z


@program("numba", lambda rng, n, m: (rng.random((n, m)), rng.random((3, 5))), (9, 13), (7, 8))
def filter2d(image, filt):
    M, N = image.shape
    Mf, Nf = filt.shape
    Mf2 = Mf // 2
    Nf2 = Nf // 2
    result = np.zeros_like(image)
    for i in range(Mf2, M - Mf2):
        for j in range(Nf2, N - Nf2):
            num = 0.0
            for ii in range(Mf):
                for jj in range(Nf):
                    num += filt[Mf - 1 - ii, Nf - 1 - jj] * image[i - Mf2 + ii, j - Nf2 + jj]
            result[i, j] = num
    return result
