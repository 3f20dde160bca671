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
    pixel_number = gray.shape[0] * gray.shape[1]
    mean_weight = 1.0 / pixel_number
    his = np.bincount(gray.ravel(), minlength=256)
    final_thresh = -1
    final_value = -1.0
    intensity_arr = np.arange(256)
    for t in range(1, 255):
        pcb = np.sum(his[:t])
        pcf = np.sum(his[t:])
        if pcb == 0 or pcf == 0:
            continue
        Wb = pcb * mean_weight
        Wf = pcf * mean_weight
        mub = np.sum(intensity_arr[:t] * his[:t]) / float(pcb)
        muf = np.sum(intensity_arr[t:] * his[t:]) / float(pcf)
        value = Wb * Wf * (mub - muf) ** 2
        if value > final_value:
            final_thresh = t
            final_value = value
    final_img = gray.copy()
    final_img[gray > final_thresh] = 255
    final_img[gray < final_thresh] = 0
    return final_img, final_thresh


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
    img_height, img_width = image.shape
    x_ratio = float(img_width - 1) / (width - 1)
    y_ratio = float(img_height - 1) / (height - 1)
    y, x = np.divmod(np.arange(height * width), width)
    x_l = np.floor(x_ratio * x).astype("int32")
    y_l = np.floor(y_ratio * y).astype("int32")
    x_h = np.minimum(np.ceil(x_ratio * x).astype("int32"), img_width - 1)
    y_h = np.minimum(np.ceil(y_ratio * y).astype("int32"), img_height - 1)
    x_weight = (x_ratio * x) - x_l
    y_weight = (y_ratio * y) - y_l
    image = image.ravel()
    a = image[y_l * img_width + x_l]
    b = image[y_l * img_width + x_h]
    c = image[y_h * img_width + x_l]
    d = image[y_h * img_width + x_h]
    resized = (
        a * (1 - x_weight) * (1 - y_weight)
        + b * x_weight * (1 - y_weight)
        + c * y_weight * (1 - x_weight)
        + d * x_weight * y_weight
    )
    return resized.reshape(height, width)


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
    imgout = img.copy()
    deltaS = np.zeros_like(imgout)
    deltaE = deltaS.copy()
    NS = deltaS.copy()
    EW = deltaS.copy()
    for ii in range(niter):
        deltaS[:-1, :] = np.diff(imgout, axis=0)
        deltaE[:, :-1] = np.diff(imgout, axis=1)
        gS = np.exp(-((deltaS / kappa) ** 2.0))
        gE = 1.0 / (1.0 + (deltaE / kappa) ** 2.0)
        E = gE * deltaE
        S = gS * deltaS
        NS[:] = S
        EW[:] = E
        NS[1:, :] -= S[:-1, :]
        EW[:, 1:] -= E[:, :-1]
        imgout += gamma * (NS + EW)
    return imgout


@program("blog", lambda rng, n, m: (rng.random((n, m)),), (6, 7), (9, 5))
def carve_seam(energy):
    r, c = energy.shape
    M = energy.copy()
    backtrack = np.zeros_like(M, dtype=int)
    for i in range(1, r):
        for j in range(0, c):
            if j == 0:
                idx = np.argmin(M[i - 1, j : j + 2])
                backtrack[i, j] = idx + j
                min_energy = M[i - 1, idx + j]
            else:
                idx = np.argmin(M[i - 1, j - 1 : j + 2])
                backtrack[i, j] = idx + j - 1
                min_energy = M[i - 1, idx + j - 1]
            M[i, j] += min_energy
    mask = np.ones((r, c), dtype=bool)
    j = np.argmin(M[-1])
    for i in reversed(range(r)):
        mask[i, j] = False
        j = backtrack[i, j]
    return energy[mask].reshape((r, c - 1))


@program("100 numpy exercises", lambda rng, n: (n,), 8, 11)
def checkerboard_vignette(n):
    Z = np.zeros((n, n), dtype=int)
    Z[1::2, ::2] = 1
    Z[::2, 1::2] = 1
    y, x = np.mgrid[-1 : 1 : n * 1j, -1 : 1 : n * 1j]
    return Z * np.exp(-(x**2 + y**2))


@program("blog", lambda rng, n, m: (photo(rng, n, m).astype(float),), (7, 9), (8, 6))
def canny_suppression(G):
    H, W = G.shape
    gy, gx = np.gradient(G)
    angle = np.rad2deg(np.arctan2(gy, gx)) % 180
    Z = np.zeros((H, W), dtype=np.int32)
    for i in range(1, H - 1):
        for j in range(1, W - 1):
            q = r = 255
            if (0 <= angle[i, j] < 22.5) or (157.5 <= angle[i, j] <= 180):
                q = G[i, j + 1]
                r = G[i, j - 1]
            elif 22.5 <= angle[i, j] < 67.5:
                q, r = G[i + 1, j - 1], G[i - 1, j + 1]
            elif 67.5 <= angle[i, j] < 112.5:
                q, r = G[i + 1, j], G[i - 1, j]
            else:
                q, r = G[i - 1, j - 1], G[i + 1, j + 1]
            if (G[i, j] >= q) and (G[i, j] >= r):
                Z[i, j] = G[i, j]
            else:
                Z[i, j] = 0
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
