"""Neural networks from scratch."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("neural networks")


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@program(
    "blog",
    lambda rng, n: (
        rng.integers(0, 2, (n, 3)),
        rng.integers(0, 2, (n, 1)),
        2 * rng.random((3, 4)) - 1,
        2 * rng.random((4, 1)) - 1,
    ),
    7,
    13,
)
def eleven_lines(X, y, syn0, syn1):
    for j in range(10):
        l1 = 1 / (1 + np.exp(-(np.dot(X, syn0))))
        l2 = 1 / (1 + np.exp(-(np.dot(l1, syn1))))
        l2_delta = (y - l2) * (l2 * (1 - l2))
        l1_delta = l2_delta.dot(syn1.T) * (l1 * (1 - l1))
        syn1 += l1.T.dot(l2_delta)
        syn0 += X.T.dot(l1_delta)
    return np.mean(np.abs(y - l2))


@program(
    "npbench",
    lambda rng, n, h: (
        rng.random((2, h, h, 3)).astype(np.float32),
        rng.random((n, n, 3, 4)).astype(np.float32),
        rng.random(4).astype(np.float32),
    ),
    (3, 8),
    (2, 5),
)
def conv2d_bias(input, weights, bias):
    K = weights.shape[0]  # Assuming square kernel
    N = input.shape[0]
    H_out = input.shape[1] - K + 1
    W_out = input.shape[2] - K + 1
    C_out = weights.shape[3]
    output = np.empty((N, H_out, W_out, C_out), dtype=np.float32)
    for i in range(H_out):
        for j in range(W_out):
            output[:, i, j, :] = np.sum(
                input[:, i : i + K, j : j + K, :, np.newaxis] * weights[np.newaxis, :, :, :],
                axis=(1, 2, 3),
            )
    return output + bias


@program(
    "npbench",
    lambda rng, n, d: (
        rng.random((n, d)).astype(np.float32),
        rng.random((d, 9)).astype(np.float32),
        rng.random(9).astype(np.float32),
        rng.random((9, 3)).astype(np.float32),
        rng.random(3).astype(np.float32),
    ),
    (7, 5),
    (4, 13),
)
def mlp(input, w1, b1, w2, b2):
    def relu(x):
        return np.maximum(x, 0)

    x = relu(input @ w1 + b1)
    x = x @ w2 + b2
    tmp_max = np.max(x, axis=-1, keepdims=True)
    tmp_out = np.exp(x - tmp_max)
    tmp_sum = np.sum(tmp_out, axis=-1, keepdims=True)
    return tmp_out / tmp_sum


@program(
    "cs231n",
    lambda rng, n, d: (
        rng.normal(size=(n, d)),
        np.ones(d),
        np.zeros(d),
        dict(mode="train", eps=1e-5, momentum=0.9),
    ),
    (7, 5),
    (12, 4),
)
def batchnorm_forward(x, gamma, beta, params):
    mode = params["mode"]
    eps, momentum = params.get("eps", 1e-5), params.get("momentum", 0.9)
    running_mean = params.get("running_mean", np.zeros(x.shape[1], dtype=x.dtype))
    if mode == "train":
        mean, var = x.mean(axis=0), x.var(axis=0)
        normalised = (x - mean) / np.sqrt(var + eps)
        running_mean = momentum * running_mean + (1 - momentum) * mean
    elif mode == "test":
        normalised = (x - running_mean) / np.sqrt(eps)
    else:
        raise ValueError('unknown mode "%s"' % mode)
    return gamma * normalised + beta, running_mean


@program(
    "cs231n", lambda rng, n, c: (rng.normal(size=(n, c)), rng.integers(0, c, n)), (9, 4), (13, 3)
)
def softmax_loss(scores, y):
    num_train = scores.shape[0]
    shifted = scores - scores.max(axis=1)[:, None]
    probs = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    loss = -np.log(probs[np.arange(num_train), y]).sum() / num_train
    dscores = probs.copy()
    dscores[range(num_train), y] -= 1
    dscores /= num_train
    one_hot = np.eye(scores.shape[1])[y]
    return loss, dscores, one_hot


@program(
    "cs231n", lambda rng, n, c: (rng.normal(size=(n, c)), rng.integers(0, c, n)), (9, 4), (13, 3)
)
def svm_loss(scores, y):
    N = scores.shape[0]
    rows = np.arange(N)
    margins = np.maximum(0, scores - scores[rows, y][:, np.newaxis] + 1.0)
    margins[rows, y] = 0
    grad = np.zeros_like(scores)
    grad[margins > 0] = 1
    grad[rows, y] -= np.sum(margins > 0, axis=1)
    grad /= N
    return np.sum(margins) / N, grad


@program("paper", lambda rng, n: (rng.normal(size=n), 6), 7, 13)
def adam(theta, steps, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8):
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    for t in range(1, steps + 1):
        g = 2 * theta + np.cos(theta)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * np.square(g)
        m_hat = m / (1 - beta1**t)
        v_hat = v / (1 - beta2**t)
        theta -= lr * m_hat / (np.sqrt(v_hat) + eps)
    return theta


@program(
    "karpathy gist",
    lambda rng, t, h: (
        list(map(int, rng.integers(0, 5, t))),
        list(map(int, rng.integers(0, 5, t))),
        np.zeros((h, 1)),
        rng.normal(size=(h, 5)),
        rng.normal(size=(h, h)),
        rng.normal(size=(5, h)),
    ),
    (4, 7),
    (6, 5),
)
def rnn_loss(inputs, targets, hprev, Wxh, Whh, Why):
    one_hot, hidden, probs = {}, {-1: np.copy(hprev)}, {}
    loss = 0
    for t in range(len(inputs)):
        one_hot[t] = np.zeros((Wxh.shape[1], 1))
        one_hot[t][inputs[t]] = 1
        hidden[t] = np.tanh(Wxh @ one_hot[t] + Whh @ hidden[t - 1])
        scores = np.exp(np.dot(Why, hidden[t]))
        probs[t] = scores / np.sum(scores)
        loss -= np.log(probs[t][targets[t], 0])
    grad, later = np.zeros_like(Whh), np.zeros_like(hprev)
    for t in reversed(range(len(inputs))):
        error = np.copy(probs[t])
        error[targets[t]] -= 1
        raw = (1 - hidden[t] ** 2) * (Why.T @ error + later)
        grad += raw @ hidden[t - 1].T
        later = Whh.T @ raw
    for each in [grad, later]:
        np.clip(each, -5, 5, out=each)  # against exploding gradients
    return loss, grad, later


@program(
    "repository",
    lambda rng, n, d: (
        rng.normal(size=n),
        rng.normal(size=d),
        np.zeros(d),
        rng.normal(size=(4 * d, n + d)),
        rng.normal(size=4 * d),
    ),
    (5, 4),
    (3, 7),
)
def lstm_cell(x, h, c, W, b):
    H = h.shape[0]
    gates = W @ np.concatenate([x, h]) + b
    i, f, o = (sigmoid(gates[k * H : (k + 1) * H]) for k in range(3))
    g = np.tanh(gates[3 * H :])
    c_next = f * c + i * g
    h_next = o * np.tanh(c_next)
    return h_next, c_next


@program(
    "picoGPT",
    lambda rng, t, e: (
        rng.normal(size=(t, e)),
        rng.normal(size=(e, 3 * e)),
        rng.normal(size=3 * e),
        rng.normal(size=(e, e)),
        2,
    ),
    (5, 6),
    (7, 8),
)
def causal_self_attention(x, w_qkv, b_qkv, w_out, n_head):
    x = x @ w_qkv + b_qkv
    qkv = np.split(x, 3, axis=-1)
    qkv_heads = list(map(lambda x: np.split(x, n_head, axis=-1), qkv))
    causal_mask = (1 - np.tri(x.shape[0], dtype=x.dtype)) * -1e10
    out_heads = []
    for q, k, v in zip(*qkv_heads):
        scores = q @ k.T / np.sqrt(q.shape[-1]) + causal_mask
        e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        out_heads.append(e / np.sum(e, axis=-1, keepdims=True) @ v)
    return np.hstack(out_heads) @ w_out


@program(
    "repository",
    lambda rng, n, d: (rng.normal(size=(n, d)), rng.random(d), rng.random(d)),
    (5, 6),
    (7, 3),
)
def layer_norm_gelu(x, g, b, eps: float = 1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    x = (x - mean) / np.sqrt(variance + eps)
    x = g * x + b
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@program(
    "pytorch tutorial",
    lambda rng, n: (
        rng.normal(size=(n, 5)),
        rng.normal(size=(n, 3)),
        rng.normal(size=(5, 8)),
        rng.normal(size=(8, 3)),
    ),
    7,
    13,
)
def two_layer_net(x, y, w1, w2, learning_rate=1e-4):
    for epoch in range(4):
        # forward
        h = x.dot(w1)
        active = np.maximum(h, 0)
        error = active.dot(w2) - y
        loss = np.square(error).sum()
        print(epoch, loss)
        # backward
        error *= 2.0
        back = error.dot(w2.T)
        back[h < 0] = 0
        w2 -= learning_rate * active.T.dot(error)
        w1 -= learning_rate * x.T.dot(back)
    return loss
