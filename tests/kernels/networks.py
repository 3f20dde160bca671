"""Layers of neural networks."""

import dace
import numpy as np

from kernels.kernel import kernel

B, H, W, CI, CO, F = 3, 9, 8, 3, 5, 3
ROWS, C0, C1, C2, C3 = 7, 6, 9, 8, 5


@dace.program
def conv2d_bias(
    data: dace.float32[B, H, W, CI], weights: dace.float32[F, F, CI, CO], bias: dace.float32[CO]
):
    out = np.empty((B, H - F + 1, W - F + 1, CO), np.float32)
    for i in range(H - F + 1):
        for j in range(W - F + 1):
            out[:, i, j, :] = np.sum(
                data[:, i : i + F, j : j + F, :, np.newaxis] * weights[np.newaxis, :, :, :],
                axis=(1, 2, 3),
            )
    return out + bias


@dace.program
def mlp(
    x: dace.float32[ROWS, C0],
    w1: dace.float32[C0, C1],
    b1: dace.float32[C1],
    w2: dace.float32[C1, C2],
    b2: dace.float32[C2],
    w3: dace.float32[C2, C3],
    b3: dace.float32[C3],
):
    h1 = np.maximum(x @ w1 + b1, 0)
    h2 = np.maximum(h1 @ w2 + b2, 0)
    z = h2 @ w3 + b3
    top = np.maximum.reduce(z, axis=-1, keepdims=True)
    e = np.exp(z - top)
    return e / np.add.reduce(e, axis=-1, keepdims=True)


@dace.program
def softmax(x: dace.float32[B, 4, H, W]):
    top = np.maximum.reduce(x, axis=-1, keepdims=True)
    e = np.exp(x - top)
    return e / np.add.reduce(e, axis=-1, keepdims=True)


@dace.program
def conv(data: dace.float32[B, 12, 12, 1], weights: dace.float32[5, 5, 1, 6]):
    out = np.zeros((B, 8, 8, 6), np.float32)
    for n, i, j, c in dace.map[0:B, 0:8, 0:8, 0:6]:
        for y, x, k in dace.map[0:5, 0:5, 0:1]:
            out[n, i, j, c] += data[n, i + y, j + x, k] * weights[y, x, k, c]
    return out


@dace.program
def lenet(
    data: dace.float32[B, 12, 12, 1],
    conv1: dace.float32[5, 5, 1, 6],
    conv1bias: dace.float32[6],
    conv2: dace.float32[3, 3, 6, 4],
    conv2bias: dace.float32[4],
    fc1w: dace.float32[4, 10],
    fc1b: dace.float32[10],
    fc2w: dace.float32[10, 5],
    fc2b: dace.float32[5],
):
    c1 = np.zeros((B, 8, 8, 6), np.float32)
    for n, i, j, c, y, x, k in dace.map[0:B, 0:8, 0:8, 0:6, 0:5, 0:5, 0:1]:
        c1[n, i, j, c] += data[n, i + y, j + x, k] * conv1[y, x, k, c]
    r1 = np.maximum(c1 + conv1bias, 0)
    p1 = np.full((B, 4, 4, 6), -np.inf, np.float32)
    for n, i, j, c, y, x in dace.map[0:B, 0:4, 0:4, 0:6, 0:2, 0:2]:
        p1[n, i, j, c] = max(p1[n, i, j, c], r1[n, 2 * i + y, 2 * j + x, c])
    c2 = np.zeros((B, 2, 2, 4), np.float32)
    for n, i, j, c, y, x, k in dace.map[0:B, 0:2, 0:2, 0:4, 0:3, 0:3, 0:6]:
        c2[n, i, j, c] += p1[n, i + y, j + x, k] * conv2[y, x, k, c]
    r2 = np.maximum(c2 + conv2bias, 0)
    p2 = np.full((B, 1, 1, 4), -np.inf, np.float32)
    for n, i, j, c, y, x in dace.map[0:B, 0:1, 0:1, 0:4, 0:2, 0:2]:
        p2[n, i, j, c] = max(p2[n, i, j, c], r2[n, 2 * i + y, 2 * j + x, c])
    flat = np.reshape(p2, (B, 4))
    f1 = np.maximum(flat @ fc1w + fc1b, 0)
    return f1 @ fc2w + fc2b


@dace.program
def resnet(
    data: dace.float32[B, 6, 6, 4],
    w1: dace.float32[1, 1, 4, 3],
    w2: dace.float32[3, 3, 3, 3],
    w3: dace.float32[1, 1, 3, 4],
):
    padded = np.zeros((B, 8, 8, 3), np.float32)
    x1 = np.zeros((B, 6, 6, 3), np.float32)
    for n, i, j, c, k in dace.map[0:B, 0:6, 0:6, 0:3, 0:4]:
        x1[n, i, j, c] += data[n, i, j, k] * w1[0, 0, k, c]
    padded[:, 1:7, 1:7, :] = x1
    mean1 = np.mean(padded, axis=0)
    std1 = np.sqrt(np.mean((padded - mean1) * (padded - mean1), axis=0))
    a1 = np.maximum((padded - mean1) / np.sqrt(std1 + 1e-5), 0)
    x2 = np.zeros((B, 6, 6, 3), np.float32)
    for n, i, j, c, y, x, k in dace.map[0:B, 0:6, 0:6, 0:3, 0:3, 0:3, 0:3]:
        x2[n, i, j, c] += a1[n, i + y, j + x, k] * w2[y, x, k, c]
    mean2 = np.mean(x2, axis=0)
    std2 = np.sqrt(np.mean((x2 - mean2) * (x2 - mean2), axis=0))
    a2 = np.maximum((x2 - mean2) / np.sqrt(std2 + 1e-5), 0)
    x3 = np.zeros((B, 6, 6, 4), np.float32)
    for n, i, j, c, k in dace.map[0:B, 0:6, 0:6, 0:4, 0:3]:
        x3[n, i, j, c] += a2[n, i, j, k] * w3[0, 0, k, c]
    mean3 = np.mean(x3, axis=0)
    std3 = np.sqrt(np.mean((x3 - mean3) * (x3 - mean3), axis=0))
    a3 = (x3 - mean3) / np.sqrt(std3 + 1e-5)
    return np.maximum(a3 + data, 0)


KERNELS = [
    kernel(conv2d_bias, {"sum_expr": "a b"}, by_dace={"out_slice": "_o0 _o1"}),
    kernel(mlp, {"h1": "__i0 __i1", "h2": "__i0 __i1", "__return": "__i0"}),
    kernel(softmax, {"__return": "__i0 __i2"}),
    kernel(
        lenet,
        {"c1.2": "n i", "c2.2": "n_2 c_2", "f1": "__i0 __i1"},
        by_dace={"c1.2": "n i", "c2.2": "n c", "f1": "__i0 __i1"},
    ),
    kernel(
        resnet,
        {"x1.2": "i j", "x2.2": "i_1 j_1", "x3.2": "i_2 j_2", "__return": "__i1 __i2"},
        by_dace={"x1.2": "i j", "x2.2": "i j", "x3.2": "i j", "__return": "__i1 __i2"},
    ),
]
