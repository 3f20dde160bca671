"""Machine learning from scratch."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("machine learning")


@program("stackoverflow", lambda rng, n, m: (rng.normal(size=(n, m)),), (7, 13), (4, 5))
def softmax(x):
    """Compute softmax values for each sets of scores in x."""
    e_x = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e_x / e_x.sum(axis=-1, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@program(
    "blog", lambda rng, n, m: (rng.normal(size=(n, m)), rng.integers(0, 2, n)), (13, 4), (9, 6)
)
def logistic_regression(X, y, lr=0.1, num_iter=15, fit_intercept=True):
    if fit_intercept:
        intercept = np.ones((X.shape[0], 1))
        X = np.concatenate((intercept, X), axis=1)
    theta = np.zeros(X.shape[1])
    for i in range(num_iter):
        z = np.dot(X, theta)
        h = sigmoid(z)
        gradient = np.dot(X.T, (h - y)) / y.size
        theta -= lr * gradient
    loss = (-y * np.log(h) - (1 - y) * np.log(1 - h)).mean()
    predictions = (sigmoid(np.dot(X, theta)) >= 0.5).astype(int)
    return theta, loss, (predictions == y).mean()


@program("blog", lambda rng, n, d: (rng.normal(size=(n, d)), 3), (17, 2), (23, 3))
def kmeans(X, k, max_iters=10):
    centroids = X[:k].copy()
    for _ in range(max_iters):
        distances = np.sqrt(((X - centroids[:, np.newaxis]) ** 2).sum(axis=2))
        labels = np.argmin(distances, axis=0)
        new_centroids = np.array([X[labels == i].mean(axis=0) for i in range(k)])
        if np.all(centroids == new_centroids):
            break
        centroids = new_centroids
    return centroids, labels


@program(
    "cs231n",
    lambda rng, n, m: (rng.normal(size=(n, 4)), rng.integers(0, 3, n), rng.normal(size=(m, 4)), 3),
    (13, 5),
    (11, 7),
)
def knn_predict(X_train, y_train, X_test, k):
    squares = np.sum(X_test**2, axis=1)[:, np.newaxis] + np.sum(X_train**2, axis=1)
    dists = np.sqrt(squares - 2 * X_test.dot(X_train.T))
    y_pred = np.zeros(dists.shape[0], dtype=y_train.dtype)
    for i in range(len(y_pred)):
        nearest = y_train[np.argsort(dists[i])[:k]]
        y_pred[i] = np.argmax(np.bincount(nearest))
    return y_pred


@program(
    "blog", lambda rng, n, m: (rng.normal(size=(n, m)) * np.arange(1, m + 1), 2), (13, 4), (9, 5)
)
def pca(X, num_components):
    X_meaned = X - np.mean(X, axis=0)
    cov_mat = np.cov(X_meaned, rowvar=False)
    eigen_values, eigen_vectors = np.linalg.eigh(cov_mat)
    sorted_index = np.argsort(eigen_values)[::-1]
    sorted_eigenvalue = eigen_values[sorted_index]
    sorted_eigenvectors = eigen_vectors[:, sorted_index]
    eigenvector_subset = sorted_eigenvectors[:, 0:num_components]
    X_reduced = np.dot(eigenvector_subset.transpose(), X_meaned.transpose()).transpose()
    return np.abs(X_reduced), sorted_eigenvalue / np.sum(sorted_eigenvalue)


@program(
    "Python Machine Learning",
    lambda rng, n, m: (rng.normal(size=(n, m)), rng.choice([-1, 1], n)),
    (13, 3),
    (9, 2),
)
def perceptron_fit(X, y, eta=0.1, n_iter=5):
    w_ = np.zeros(1 + X.shape[1])
    errors_ = []
    for _ in range(n_iter):
        errors = 0
        for xi, target in zip(X, y):
            update = eta * (target - np.where(np.dot(xi, w_[1:]) + w_[0] >= 0.0, 1, -1))
            w_[1:] += update * xi
            w_[0] += update
            errors += int(update != 0.0)
        errors_.append(errors)
    return w_, errors_


@program(
    "blog",
    lambda rng, n: (rng.normal(size=(n, 3)), np.arange(n) % 3, rng.normal(size=(4, 3))),
    13,
    20,
)
def gaussian_naive_bayes(X, y, X_new):
    classes = np.unique(y)
    scores = np.empty((len(X_new), len(classes)))
    for k, c in enumerate(classes):
        Xc = X[y == c]
        mean, var = Xc.mean(axis=0), Xc.var(axis=0) + 1e-9
        log_like = -0.5 * np.sum(np.log(2 * np.pi * var) + (X_new - mean) ** 2 / var, axis=1)
        scores[:, k] = np.log(len(Xc) / len(X)) + log_like
    return classes[np.argmax(scores, axis=1)]


@program(
    "blog",
    lambda rng, p, n: (rng.choice([-1, 1], (p, n)), rng.choice([-1, 1], n)),
    (2, 13),
    (3, 20),
)
def hopfield(patterns, state):
    n = patterns.shape[1]
    W = patterns.T @ patterns / n
    np.fill_diagonal(W, 0)
    for _ in range(10):
        new_state = np.sign(W @ state)
        new_state[new_state == 0] = 1
        if (new_state == state).all():
            break
        state = new_state
    energy = -0.5 * state @ W @ state
    return state, energy


@program("blog", lambda rng, n: (np.zeros((n, 2)), rng.random(60), rng.integers(0, 2, 60)), 5, 7)
def q_learning(Q, explore, random_actions, alpha=0.5, gamma=0.9):
    n_states = Q.shape[0]
    s = 0
    for step in range(explore.size):
        if explore[step] < 0.2:
            a = random_actions[step]
        else:
            a = np.argmax(Q[s])
        s_next = min(s + 1, n_states - 1) if a == 1 else max(s - 1, 0)
        reward = 1.0 if s_next == n_states - 1 else 0.0
        Q[s, a] += alpha * (reward + gamma * np.max(Q[s_next]) - Q[s, a])
        s = 0 if reward else s_next
    return Q


@program(
    "wikipedia",
    lambda rng, n, k: (
        rng.random((k, k)),
        rng.random((k, 4)),
        rng.random(k),
        rng.integers(0, 4, n),
    ),
    (9, 3),
    (13, 5),
)
def viterbi(A, B, pi, y):
    n_states, length = A.shape[0], len(y)
    score = np.empty((length, n_states))
    back = np.zeros((length, n_states), dtype="B")
    score[0] = np.log(pi) + np.log(B[:, y[0]])
    for t in range(1, length):
        candidates = score[t - 1][:, None] + np.log(A)
        back[t] = candidates.argmax(axis=0)
        score[t] = candidates.max(0) + np.log(B[:, y[t]])
    path = [int(score[-1].argmax())]
    for t in reversed(range(1, length)):
        path.append(int(back[t, path[-1]]))
    return np.array(path[::-1]), score


@program(
    "blog", lambda rng, n: (np.concatenate((rng.normal(-2, 1, n), rng.normal(3, 0.5, n))), 8), 9, 14
)
def gaussian_mixture_em(x, n_iter):
    mu, sigma, pi = np.array([-1.0, 1.0]), np.array([1.0, 1.0]), np.array([0.5, 0.5])
    log_likelihood = []
    for _ in range(n_iter):
        dens = (
            pi / (sigma * np.sqrt(2 * np.pi)) * np.exp(-((x[:, None] - mu) ** 2) / (2 * sigma**2))
        )
        total = dens.sum(axis=1, keepdims=True)
        gamma = dens / total
        log_likelihood.append(np.log(total).sum())
        Nk = gamma.sum(axis=0)
        mu = (gamma * x[:, None]).sum(axis=0) / Nk
        sigma = np.sqrt((gamma * (x[:, None] - mu) ** 2).sum(axis=0) / Nk)
        pi = Nk / len(x)
    return mu, sigma, pi, np.array(log_likelihood)


@program(
    "stackoverflow",
    lambda rng, n: (rng.integers(0, 4, n), rng.integers(0, 4, n), rng.random(n), 4),
    15,
    26,
)
def classification_report(y_true, y_pred, scores, n_classes):
    cm = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(cm, (y_true, y_pred), 1)
    precision = np.diag(cm) / np.maximum(cm.sum(axis=0), 1)
    recall = np.diag(cm) / np.maximum(cm.sum(axis=1), 1)
    order = np.argsort(-scores)
    positive = (y_true == 0)[order]
    tpr = np.cumsum(positive) / positive.sum()
    fpr = np.cumsum(~positive) / (~positive).sum()
    auc = np.trapezoid(tpr, fpr)
    return cm, precision, recall, auc


@program("blog", lambda rng, n: (rng.normal(size=(n, 3)), rng.integers(0, 2, n)), 13, 21)
def decision_stump(X, y):
    def gini(labels):
        if labels.size == 0:
            return 0.0
        p = labels.mean()
        return 2 * p * (1 - p)

    best = (np.inf, -1, 0.0)
    for feature in range(X.shape[1]):
        for threshold in np.sort(X[:, feature]):
            left = X[:, feature] <= threshold
            score = left.mean() * gini(y[left]) + (~left).mean() * gini(y[~left])
            if score < best[0]:
                best = (score, feature, threshold)
    return best
