"""Learning from scratch: trees, boosting, networks with dictionaries of parameters, agents."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("learning from scratch")


def sigmoid(Z):
    A = 1 / (1 + np.exp(-Z))
    cache = Z
    return A, cache


def relu(Z):
    A = np.maximum(0, Z)
    assert A.shape == Z.shape
    cache = Z
    return A, cache


def linear_activation_forward(A_prev, W, b, activation):
    Z = W.dot(A_prev) + b
    linear_cache = (A_prev, W, b)
    if activation == "sigmoid":
        A, activation_cache = sigmoid(Z)
    elif activation == "relu":
        A, activation_cache = relu(Z)
    return A, (linear_cache, activation_cache)


def L_model_forward(X, parameters):
    caches = []
    A = X
    L = len(parameters) // 2
    for l in range(1, L):
        A_prev = A
        A, cache = linear_activation_forward(
            A_prev, parameters["W" + str(l)], parameters["b" + str(l)], "relu"
        )
        caches.append(cache)
    AL, cache = linear_activation_forward(
        A, parameters["W" + str(L)], parameters["b" + str(L)], activation="sigmoid"
    )
    caches.append(cache)
    return AL, caches


def linear_backward(dZ, cache):
    A_prev, W, b = cache
    m = A_prev.shape[1]
    dW = 1.0 / m * np.dot(dZ, A_prev.T)
    db = 1.0 / m * np.sum(dZ, axis=1, keepdims=True)
    dA_prev = np.dot(W.T, dZ)
    return dA_prev, dW, db


def L_model_backward(AL, Y, caches):
    grads = {}
    L = len(caches)
    dAL = -(np.divide(Y, AL) - np.divide(1 - Y, 1 - AL))
    linear_cache, Z = caches[L - 1]
    s = 1 / (1 + np.exp(-Z))
    dA, grads[f"dW{L}"], grads[f"db{L}"] = linear_backward(dAL * s * (1 - s), linear_cache)
    for l in reversed(range(L - 1)):
        linear_cache, Z = caches[l]
        dZ = np.array(dA, copy=True)
        dZ[Z <= 0] = 0
        dA, dW, db = linear_backward(dZ, linear_cache)
        grads["dW" + str(l + 1)] = dW
        grads["db" + str(l + 1)] = db
    return grads


@program(
    "deeplearning.ai",
    lambda rng, m: (
        rng.random((3, m)),
        (rng.random((1, m)) > 0.5).astype(int),
        rng.normal(size=(4, 3)),
        rng.normal(size=(1, 4)),
    ),
    6,
    9,
)
def L_layer_model(X, Y, W1, W2):
    parameters = {"W1": W1, "b1": np.zeros((4, 1)), "W2": W2, "b2": np.zeros((1, 1))}
    costs = []
    for i in range(0, 6):
        AL, caches = L_model_forward(X, parameters)
        m = Y.shape[1]
        cost = (1.0 / m) * (-np.dot(Y, np.log(AL).T) - np.dot(1 - Y, np.log(1 - AL).T))
        cost = np.squeeze(cost)
        grads = L_model_backward(AL, Y, caches)
        L = len(parameters) // 2
        for l in range(L):
            parameters["W" + str(l + 1)] -= 0.05 * grads["dW" + str(l + 1)]
            parameters["b" + str(l + 1)] -= 0.05 * grads["db" + str(l + 1)]
        if i % 2 == 0:
            costs.append(cost)
    return parameters, costs


@program(
    "karpathy",
    lambda rng, n: (
        rng.integers(0, 5, n),
        rng.normal(size=(4, 5)) * 0.1,
        rng.normal(size=(4, 4)) * 0.1,
        rng.normal(size=(5, 4)) * 0.1,
    ),
    6,
)
def min_char_rnn(data, Wxh, Whh, Why):
    vocab_size, hidden_size = 5, 4
    bh = np.zeros((hidden_size, 1))
    by = np.zeros((vocab_size, 1))
    inputs, targets = data[:-1], data[1:]
    xs, hs, ys, ps = {}, {}, {}, {}
    hs[-1] = np.zeros((hidden_size, 1))
    loss = 0
    for t in range(len(inputs)):
        xs[t] = np.zeros((vocab_size, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(np.dot(Wxh, xs[t]) + np.dot(Whh, hs[t - 1]) + bh)
        ys[t] = np.dot(Why, hs[t]) + by
        ps[t] = np.exp(ys[t]) / np.sum(np.exp(ys[t]))
        loss += -np.log(ps[t][targets[t], 0])
    dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    dbh, dby = np.zeros_like(bh), np.zeros_like(by)
    dhnext = np.zeros_like(hs[0])
    for t in reversed(range(len(inputs))):
        dy = np.copy(ps[t])
        dy[targets[t]] -= 1
        dWhy += np.dot(dy, hs[t].T)
        dby += dy
        dh = np.dot(Why.T, dy) + dhnext
        dhraw = (1 - hs[t] * hs[t]) * dh
        dbh += dhraw
        dWxh += np.dot(dhraw, xs[t].T)
        dWhh += np.dot(dhraw, hs[t - 1].T)
        dhnext = np.dot(Whh.T, dhraw)
    for dparam in [dWxh, dWhh, dWhy, dbh, dby]:
        np.clip(dparam, -5, 5, out=dparam)
    mWxh, mWhh, mWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    mbh, mby = np.zeros_like(bh), np.zeros_like(by)
    for param, dparam, mem in zip(
        [Wxh, Whh, Why, bh, by], [dWxh, dWhh, dWhy, dbh, dby], [mWxh, mWhh, mWhy, mbh, mby]
    ):
        mem += dparam * dparam
        param += -0.1 * dparam / np.sqrt(mem + 1e-8)
    return loss, bh, by, hs[len(inputs) - 1]


def discount_rewards(r, gamma=0.99):
    discounted_r = np.zeros_like(r)
    running_add = 0
    for t in reversed(range(0, r.size)):
        if r[t] != 0:
            running_add = 0
        running_add = running_add * gamma + r[t]
        discounted_r[t] = running_add
    return discounted_r


@program(
    "karpathy",
    lambda rng, n: (
        rng.random((n, 5)),
        rng.random((4, 5)),
        rng.random(4),
        rng.random(n),
        np.round(rng.random(n) * 1.5 - 0.75),
    ),
    7,
)
def pong_gradient(observations, W1, W2, uniforms, rewards):
    model = {"W1": W1, "W2": W2}
    grad_buffer = {k: np.zeros_like(v) for k, v in model.items()}
    rmsprop_cache = {k: np.zeros_like(v) for k, v in model.items()}
    xs, hs, dlogps = [], [], []
    for x, u in zip(observations, uniforms):
        h = np.dot(model["W1"], x)
        h[h < 0] = 0
        logp = np.dot(model["W2"], h)
        aprob = 1.0 / (1.0 + np.exp(-logp))
        action = 2 if u < aprob else 3
        y = 1 if action == 2 else 0
        xs.append(x)
        hs.append(h)
        dlogps.append(y - aprob)
    epx, eph, epdlogp = np.vstack(xs), np.vstack(hs), np.vstack(dlogps)
    discounted_epr = discount_rewards(rewards)
    discounted_epr -= np.mean(discounted_epr)
    discounted_epr /= np.std(discounted_epr)
    epdlogp *= discounted_epr[:, np.newaxis]
    dW2 = np.dot(eph.T, epdlogp).ravel()
    dh = np.outer(epdlogp, model["W2"])
    dh[eph <= 0] = 0
    dW1 = np.dot(dh.T, epx)
    grad = {"W1": dW1, "W2": dW2}
    for k in model:
        grad_buffer[k] += grad[k]
    for k, v in model.items():
        g = grad_buffer[k]
        rmsprop_cache[k] = 0.99 * rmsprop_cache[k] + (1 - 0.99) * g**2
        model[k] += 1e-4 * g / (np.sqrt(rmsprop_cache[k]) + 1e-5)
        grad_buffer[k] = np.zeros_like(v)
    return model


@program(
    "textbook", lambda rng, n: (rng.random((n, 2)), np.where(rng.random(n) > 0.5, 1, -1)), 8, 11
)
def adaboost_stumps(X, y):
    n, d = X.shape
    w = np.full(n, 1 / n)
    scores = np.zeros(n)
    chosen = []
    for _ in range(3):
        min_error = float("inf")
        best_feature, best_threshold, best_polarity = 0, 0.0, 1
        for feature in range(d):
            for threshold in X[:, feature]:
                p = 1
                prediction = np.ones(n)
                prediction[X[:, feature] < threshold] = -1
                error = sum(w[y != prediction])
                if error > 0.5:
                    error = 1 - error
                    p = -1
                if error < min_error - 1e-12:
                    best_polarity = p
                    best_threshold = threshold
                    best_feature = feature
                    min_error = error
        alpha = 0.5 * np.log((1.0 - min_error) / (min_error + 1e-10))
        predictions = np.ones(n)
        negative_idx = best_polarity * X[:, best_feature] < best_polarity * best_threshold
        predictions[negative_idx] = -1
        w *= np.exp(-alpha * y * predictions)
        w /= np.sum(w)
        scores += alpha * predictions
        chosen.append(best_feature)
    return np.sign(scores), w, chosen


@program(
    "numpy-ml", lambda rng, n: (rng.random((n, 2)), rng.integers(0, 3, n), rng.random((4, 2))), 9
)
def linear_discriminants(X, y, X_test):
    classes = np.unique(y)
    mean = X.mean(axis=0)
    Sw = np.zeros((2, 2))
    Sb = np.zeros((2, 2))
    for c in range(3):
        X_c = X[y == c]
        mean_c = np.mean(X_c, axis=0)
        Sw += (X_c - mean_c).T.dot(X_c - mean_c)
        diff = (mean_c - mean).reshape(2, 1)
        Sb += X_c.shape[0] * diff.dot(diff.T)
    A = np.linalg.inv(Sw).dot(Sb)
    return A, len(classes), X_test.dot(A)


@program(
    "textbook",
    lambda rng, n: (rng.random((n, 4, 4)), rng.random((2, 3, 3)), rng.random((2, 2))),
    2,
    3,
)
def tiny_convnet(images, kernels, dense):
    n, h, w = images.shape
    f, kh, kw = kernels.shape
    oh, ow = h - kh + 1, w - kw + 1
    out = np.zeros((n, f, oh, ow))
    for k in range(f):
        for i in range(oh):
            for j in range(ow):
                out[:, k, i, j] = np.sum(
                    images[:, i : i + kh, j : j + kw] * kernels[k], axis=(1, 2)
                )
    out = np.maximum(out, 0)
    pooled = out.max(axis=(2, 3))
    logits = pooled @ dense
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@program("textbook", lambda rng, n: (rng.random((n, 3)), rng.random((n, 3)), 2), 6, 9)
def attention_with_heads(x, context, n_heads):
    T, d = x.shape
    mask = np.triu(np.ones((T, T)), k=1).astype(bool)
    outputs = []
    for head in range(n_heads):
        q = x * (head + 1)
        k = context - head
        scores = q @ k.T / np.sqrt(d)
        scores[mask] = -1e9
        scores -= scores.max(-1, keepdims=True)
        weights = np.exp(scores)
        weights /= weights.sum(-1, keepdims=True)
        outputs.append(weights @ context)
    return np.concatenate(outputs, axis=-1)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    exp_x = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exp_x / np.sum(exp_x, axis=-1, keepdims=True)


def layer_norm(x, g, b, eps: float = 1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return g * (x - mean) / np.sqrt(variance + eps) + b


def linear(x, w, b):
    return x @ w + b


def ffn(x, c_fc, c_proj):
    return linear(gelu(linear(x, **c_fc)), **c_proj)


def attention(q, k, v, mask):
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v


def mha(x, c_attn, c_proj, n_head):
    x = linear(x, **c_attn)
    qkv_heads = list(map(lambda x: np.split(x, n_head, axis=-1), np.split(x, 3, axis=-1)))
    causal_mask = (1 - np.tri(x.shape[0], dtype=x.dtype)) * -1e10
    out_heads = [attention(q, k, v, causal_mask) for q, k, v in zip(*qkv_heads)]
    x = linear(np.hstack(out_heads), **c_proj)
    return x


def transformer_block(x, mlp, attn, ln_1, ln_2, n_head):
    x = x + mha(layer_norm(x, **ln_1), **attn, n_head=n_head)
    x = x + ffn(layer_norm(x, **ln_2), **mlp)
    return x


def gpt_weights(rng, T, E):
    return (
        rng.integers(0, 7, T),
        rng.normal(size=(7, E)),
        rng.normal(size=(T, E)),
        rng.normal(size=(E, 3 * E)) * 0.3,
        rng.normal(size=(E, E)),
        rng.normal(size=(E, 4 * E)) * 0.2,
        rng.normal(size=(4 * E, E)) * 0.2,
    )


@program("picoGPT", gpt_weights, (4, 4), (5, 6))
def gpt2(inputs, wte, wpe, w_attn, w_proj, w_fc, w_out):
    E = wte.shape[1]
    block = {
        "mlp": {
            "c_fc": {"w": w_fc, "b": np.zeros(4 * E)},
            "c_proj": {"w": w_out, "b": np.zeros(E)},
        },
        "attn": {
            "c_attn": {"w": w_attn, "b": np.zeros(3 * E)},
            "c_proj": {"w": w_proj, "b": np.zeros(E)},
        },
        "ln_1": {"g": np.ones(E), "b": np.zeros(E)},
        "ln_2": {"g": np.ones(E), "b": np.zeros(E)},
    }
    blocks = [block, block]
    ln_f = {"g": np.ones(E), "b": np.zeros(E)}
    x = wte[inputs] + wpe[range(len(inputs))]
    for block in blocks:
        x = transformer_block(x, **block, n_head=2)
    return layer_norm(x, **ln_f) @ wte.T


@program("textbook", lambda rng, n: (rng.random((n, 3)), 2, 4), 9, 13)
def kmeans_plus_plus(X, k, iters):
    n = X.shape[0]
    centers = np.empty((k, X.shape[1]))
    centers[0] = X[0]
    for c in range(1, k):
        d2 = np.min(((X[:, None, :] - centers[None, :c, :]) ** 2).sum(-1), axis=1)
        centers[c] = X[np.argmax(d2)]
    labels = np.zeros(n, dtype=int)
    for _ in range(iters):
        new_labels = np.argmin(np.linalg.norm(X[:, None] - centers, axis=2), axis=1)
        if np.array_equal(new_labels, labels):
            break
        labels = new_labels
        for c in range(k):
            members = X[labels == c]
            if len(members) > 0:
                centers[c] = members.mean(axis=0)
    inertia = sum(((X[labels == c] - centers[c]) ** 2).sum() for c in range(k))
    return centers, labels, inertia


@program("textbook", lambda rng, n: (rng.random((n, n)) + 0.05, 0.9), 4, 5)
def policy_iteration(R, gamma):
    n_states, n_actions = R.shape
    P = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            P[s, a, (s + a) % n_states] = 0.8
            P[s, a, s] += 0.2
    policy = np.zeros(n_states, dtype=np.int64)
    stable = False
    rounds = 0
    while not stable:
        P_pi = P[np.arange(n_states), policy]
        R_pi = R[np.arange(n_states), policy]
        V = np.linalg.solve(np.eye(n_states) - gamma * P_pi, R_pi)
        Q = R + gamma * np.einsum("sat,t->sa", P, V)
        new_policy = Q.argmax(axis=1)
        stable = np.all(new_policy == policy)
        policy = new_policy
        rounds += 1
    return V, policy, rounds


@program("textbook", lambda rng, n: (rng.random((n, 2)), 2.0, 0.1), 7, 10)
def tsne_gradient(Y, perplexity, lr):
    n = Y.shape[0]
    sum_Y = np.sum(np.square(Y), 1)
    num = -2.0 * np.dot(Y, Y.T)
    num = 1.0 / (1.0 + np.add(np.add(num, sum_Y).T, sum_Y))
    num[range(n), range(n)] = 0.0
    Q = num / np.sum(num)
    Q = np.maximum(Q, 1e-12)
    P = np.ones((n, n)) / n**2
    PQ = P - Q
    dY = np.zeros((n, 2))
    for i in range(n):
        dY[i, :] = np.sum(np.tile(PQ[:, i] * num[:, i], (2, 1)).T * (Y[i, :] - Y), 0)
    C = np.sum(P * np.log(P / Q))
    return Y - lr * dY - np.tile(np.mean(Y, 0), (n, 1)), C


@program("textbook", lambda rng, n: (rng.random(n), rng.integers(0, 2, n)), 8, 12)
def roc_auc(scores, labels):
    order = np.argsort(scores)[::-1]
    labels = labels[order]
    tps = np.cumsum(labels)
    fps = np.cumsum(1 - labels)
    tpr = np.r_[0, tps / tps[-1]]
    fpr = np.r_[0, fps / fps[-1]]
    auc = np.trapezoid(tpr, fpr)
    return tpr, fpr, auc


@program(
    "blog",
    lambda rng, n: (
        rng.random((n, n)) * (rng.random((n, n)) > 0.3),
        rng.random((n, 2)),
        rng.random((2, n)),
    ),
    5,
    8,
)
def als_factorization(R, U, V):
    lam = 0.1
    W = R > 0
    for _ in range(2):
        for u, Wu in enumerate(W):
            U[u] = np.linalg.solve(
                np.dot(V, np.dot(np.diag(Wu), V.T)) + lam * np.eye(2),
                np.dot(V, np.dot(np.diag(Wu), R[u].T)),
            ).T
        for i, Wi in enumerate(W.T):
            V[:, i] = np.linalg.solve(
                np.dot(U.T, np.dot(np.diag(Wi), U)) + lam * np.eye(2),
                np.dot(U.T, np.dot(np.diag(Wi), R[:, i])),
            )
    return np.sum((W * (R - U @ V)) ** 2)
