"""Computational geometry."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("geometry")


def points(rng, n):
    return rng.random((n, 2))


@program(
    "stackoverflow", lambda rng, n, m: (rng.random((n, 3)), rng.random((m, 3))), (7, 13), (9, 5)
)
def pairwise_distances(A, B):
    diff = A[:, np.newaxis, :] - B[np.newaxis, :, :]
    dist = np.sqrt((diff**2).sum(-1))
    nearest = dist.argmin(axis=1)
    return dist, nearest, dist[np.arange(len(A)), nearest]


@program("stackoverflow", lambda rng, n: (rng.random(n), rng.random(n)), 7, 12)
def polygon_area(x, y):
    return 0.5 * np.abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))


@program(
    "numba",
    lambda rng, n, m: (
        points(rng, m) * 1.5 - 0.25,
        np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, 6, n)]) * 0.4 + 0.5,
    ),
    (7, 13),
    (9, 20),
)
def points_in_polygon(points, polygon):
    inside = np.zeros(len(points), dtype=bool)
    n = len(polygon)
    for i in range(len(points)):
        x, y = points[i]
        p1x, p1y = polygon[0]
        hit = False
        for j in range(1, n + 1):
            p2x, p2y = polygon[j % n]
            if min(p1y, p2y) < y <= max(p1y, p2y):
                if x <= max(p1x, p2x):
                    if p1y != p2y:
                        xints = (y - p1y) * (p2x - p1x) / (p2y - p1y) + p1x
                    if p1x == p2x or x <= xints:
                        hit = not hit
            p1x, p1y = p2x, p2y
        inside[i] = hit
    return inside


@program("stackoverflow", lambda rng, n: (points(rng, n), 0.3), 7, 13)
def rotate(p, angle, origin=(0, 0)):
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    o = np.atleast_2d(origin)
    p = np.atleast_2d(p)
    return np.squeeze((R @ (p.T - o.T) + o.T).T)


@program(
    "stackoverflow",
    lambda rng, n: (
        rng.uniform(-180, 180, n),
        rng.uniform(-80, 80, n),
        rng.uniform(-180, 180, n),
        rng.uniform(-80, 80, n),
    ),
    9,
    14,
)
def haversine_np(lon1, lat1, lon2, lat2):
    lon1, lat1, lon2, lat2 = map(np.radians, [lon1, lat1, lon2, lat2])
    dlon = lon2 - lon1
    dlat = lat2 - lat1
    a = np.sin(dlat / 2.0) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin(dlon / 2.0) ** 2
    return 6378.137 * 2 * np.arcsin(np.sqrt(a))


@program(
    "blog", lambda rng, n, m: (rng.random((n, 3)), rng.integers(0, n, (m, 3))), (9, 13), (12, 7)
)
def vertex_normals(vertices, faces):
    norm = np.zeros(vertices.shape, dtype=vertices.dtype)
    tris = vertices[faces]
    n = np.cross(tris[::, 1] - tris[::, 0], tris[::, 2] - tris[::, 0])
    areas = 0.5 * np.sqrt((n**2).sum(axis=1))
    np.add.at(norm, faces[:, 0], n)
    np.add.at(norm, faces[:, 1], n)
    np.add.at(norm, faces[:, 2], n)
    lens = np.linalg.norm(norm, axis=1, keepdims=True)
    return norm / np.where(lens == 0, 1, lens), areas.sum()


@program("textbook", lambda rng, n: (points(rng, n),), 9, 16)
def closest_pair(P):
    best, pair = np.inf, (-1, -1)
    for i in range(len(P) - 1):
        d = np.hypot(*(P[i + 1 :] - P[i]).T)
        j = d.argmin()
        if d[j] < best:
            best, pair = d[j], (i, i + 1 + j)
    return best, pair


@program(
    "stackoverflow",
    lambda rng, n: (points(rng, n), points(rng, n), points(rng, n), points(rng, n)),
    7,
    11,
)
def segments_intersect(a1, a2, b1, b2):
    da, db, dp = a2 - a1, b2 - b1, a1 - b1
    perp = np.empty_like(da)
    perp[..., 0] = -da[..., 1]
    perp[..., 1] = da[..., 0]
    denom = np.sum(perp * db, axis=-1)
    t = np.sum(perp * dp, axis=-1) / denom
    return t[:, None] * db + b1, (t >= 0) & (t <= 1)


@program("robotics blog", lambda rng, n: (rng.normal(size=(n, 4)), rng.normal(size=(n, 3))), 7, 12)
def rotate_by_quaternions(q, v):
    q = q / np.linalg.norm(q, axis=-1)[..., None]
    w, u = q[:, :1], q[:, 1:]
    t = 2 * np.cross(u, v)
    rotated = v + w * t + np.cross(u, t)
    assert np.allclose(np.linalg.norm(rotated, axis=1), np.linalg.norm(v, axis=1))
    return rotated


@program("textbook", lambda rng, n: (points(rng, n),), 9, 15)
def gift_wrapping(S):
    point_on_hull = np.argmin(S[:, 0])
    hull = []
    while True:
        hull.append(point_on_hull)
        endpoint = 0
        for j in range(len(S)):
            d = S[endpoint] - S[hull[-1]]
            e = S[j] - S[hull[-1]]
            if endpoint == point_on_hull or d[0] * e[1] - d[1] * e[0] < 0:
                endpoint = j
        point_on_hull = endpoint
        if endpoint == hull[0] or len(hull) > len(S):
            break
    return np.array(hull)


@program(
    "vision blog",
    lambda rng, n: (np.cumsum(rng.random((n, 2, 2)), axis=1).reshape(n, 4), rng.random(n)),
    7,
    12,
)
def non_max_suppression(dets, scores, thresh=0.3):
    x1, y1, x2, y2 = dets[:, 0], dets[:, 1], dets[:, 2], dets[:, 3]
    areas = (x2 - x1) * (y2 - y1)
    order = scores.argsort()[::-1]
    keep = []
    while order.size > 0:
        i = order[0]
        keep.append(i)
        xx1 = np.maximum(x1[i], x1[order[1:]])
        yy1 = np.maximum(y1[i], y1[order[1:]])
        xx2 = np.minimum(x2[i], x2[order[1:]])
        yy2 = np.minimum(y2[i], y2[order[1:]])
        w = np.maximum(0.0, xx2 - xx1)
        h = np.maximum(0.0, yy2 - yy1)
        inter = w * h
        ovr = inter / (areas[i] + areas[order[1:]] - inter)
        inds = np.where(ovr <= thresh)[0]
        order = order[inds + 1]
    return keep


@program("vision course", lambda rng, n: (rng.random((n, 3)) + [0, 0, 2], 500.0, (320, 240)), 7, 13)
def project_points(X, focal, principal):
    cx, cy = principal
    K = np.array([[focal, 0, cx], [0, focal, cy], [0, 0, 1]])
    homogeneous = X @ K.T
    pixels = homogeneous[:, :2] / homogeneous[:, 2:]
    visible = np.all((pixels >= 0) & (pixels < [2 * cx, 2 * cy]), axis=1)
    return pixels, visible


@program("100 numpy exercises", lambda rng, n: (rng.random((n, 2)),), 10, 13)
def cartesian_to_polar(Z):
    X, Y = Z[:, 0], Z[:, 1]
    R = np.sqrt(X**2 + Y**2)
    T = np.arctan2(Y, X)
    return R, T


@program(
    "point cloud blog", lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(3, 3))), 9, 14
)
def kabsch(P, A):
    Q = P @ np.linalg.qr(A)[0] + np.array([1.0, -2.0, 0.5])
    Pc, Qc = P - P.mean(axis=0), Q - Q.mean(axis=0)
    U, S, Vt = np.linalg.svd(Pc.T @ Qc)
    d = np.sign(np.linalg.det(Vt.T @ U.T))
    D = np.diag([1.0, 1.0, d])
    R = Vt.T @ D @ U.T
    rmsd = np.sqrt(((Pc @ R.T - Qc) ** 2).sum() / len(P))
    return R, S, rmsd > 1e-6


@program(
    "scipy",
    lambda rng, n, m: (rng.random((n, 2)), rng.random(n), rng.random((m, 2))),
    (7, 9),
    (10, 4),
)
def rbf_interpolation(centers, values, query, eps=2.0):
    def kernel(a, b):
        r2 = np.sum((a[:, None] - b[None]) ** 2, axis=-1)
        return np.exp(-(eps**2) * r2)

    K = kernel(centers, centers)
    K.flat[:: len(K) + 1] += 1e-3
    w = np.linalg.solve(K, values)
    return kernel(query, centers) @ w
