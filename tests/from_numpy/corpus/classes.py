"""Small libraries with classes: networks, filters, solvers, as READMEs show them."""

from dataclasses import dataclass

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("classes and small libraries")


class Layer:
    def __init__(self):
        self.params = {}
        self.grads = {}

    def forward(self, inputs):
        raise NotImplementedError

    def backward(self, grad):
        raise NotImplementedError


class Linear(Layer):
    def __init__(self, w, b):
        super().__init__()
        self.params["w"] = w
        self.params["b"] = b

    def forward(self, inputs):
        self.inputs = inputs
        return inputs @ self.params["w"] + self.params["b"]

    def backward(self, grad):
        self.grads["b"] = np.sum(grad, axis=0)
        self.grads["w"] = self.inputs.T @ grad
        return grad @ self.params["w"].T


def tanh_prime(x):
    y = np.tanh(x)
    return 1 - y**2


class Activation(Layer):
    def __init__(self, f, f_prime):
        super().__init__()
        self.f = f
        self.f_prime = f_prime

    def forward(self, inputs):
        self.inputs = inputs
        return self.f(inputs)

    def backward(self, grad):
        return self.f_prime(self.inputs) * grad


class NeuralNet:
    def __init__(self, layers):
        self.layers = layers

    def forward(self, inputs):
        for layer in self.layers:
            inputs = layer.forward(inputs)
        return inputs

    def backward(self, grad):
        for layer in reversed(self.layers):
            grad = layer.backward(grad)
        return grad

    def params_and_grads(self):
        for layer in self.layers:
            for name, param in layer.params.items():
                grad = layer.grads[name]
                yield param, grad


class MSE:
    def loss(self, predicted, actual):
        return np.sum((predicted - actual) ** 2)

    def grad(self, predicted, actual):
        return 2 * (predicted - actual)


class SGD:
    def __init__(self, lr=0.01):
        self.lr = lr

    def step(self, net):
        for param, grad in net.params_and_grads():
            param -= self.lr * grad


def net_inputs(rng, n, h):
    return (
        rng.random((n, 3)),
        rng.random((n, 2)),
        rng.normal(size=(3, h)),
        np.zeros(h),
        rng.normal(size=(h, 2)),
        np.zeros(2),
    )


@program("joelnet", net_inputs, (6, 4), (9, 5))
def train_joelnet(inputs, targets, w1, b1, w2, b2):
    net = NeuralNet([Linear(w1, b1), Activation(np.tanh, tanh_prime), Linear(w2, b2)])
    loss, optimizer = MSE(), SGD(lr=0.01)
    losses = []
    for epoch in range(4):
        epoch_loss = 0.0
        for start in range(0, len(inputs), 3):
            batch_x = inputs[start : start + 3]
            batch_y = targets[start : start + 3]
            predicted = net.forward(batch_x)
            epoch_loss += loss.loss(predicted, batch_y)
            net.backward(loss.grad(predicted, batch_y))
            optimizer.step(net)
        losses.append(epoch_loss)
    return losses


class Value:
    """A scalar of micrograd."""

    def __init__(self, data, _children=(), _op=""):
        self.data = data
        self.grad = 0
        self._backward = lambda: None
        self._prev = set(_children)

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def relu(self):
        out = Value(np.maximum(0, self.data), (self,), "ReLU")

        def _backward():
            self.grad += (out.data > 0) * out.grad

        out._backward = _backward
        return out

    def backward(self):
        topo = []
        visited = set()

        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build_topo(child)
                topo.append(v)

        build_topo(self)
        self.grad = np.ones_like(self.data)
        for v in reversed(topo):
            v._backward()

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other


@program("micrograd", lambda rng, n: (rng.normal(size=n), rng.normal(size=n)), 5, 8)
def micrograd_expression(a0, b0):
    a, b = Value(a0), Value(b0)
    c = a + b
    d = a * b + b * 3
    c = c + c + 1
    e = (c * d).relu() + 2 * a
    e.backward()
    return e.data, a.grad, b.grad


class KalmanFilter:
    def __init__(self, F, H, Q, R, P, x0):
        self.F = F
        self.H = H
        self.Q = np.eye(F.shape[0]) if Q is None else Q
        self.R = R
        self.P = P
        self.x = x0
        self.n = F.shape[1]

    def predict(self):
        self.x = np.dot(self.F, self.x)
        self.P = np.dot(np.dot(self.F, self.P), self.F.T) + self.Q
        return self.x

    def update(self, z):
        y = z - np.dot(self.H, self.x)
        S = self.R + np.dot(self.H, np.dot(self.P, self.H.T))
        K = np.dot(np.dot(self.P, self.H.T), np.linalg.inv(S))
        self.x = self.x + np.dot(K, y)
        identity = np.eye(self.n)
        self.P = np.dot(
            np.dot(identity - np.dot(K, self.H), self.P), (identity - np.dot(K, self.H)).T
        ) + np.dot(np.dot(K, self.R), K.T)


@program("github", lambda rng, n: (rng.normal(size=n),), 6, 13)
def track(measurements):
    dt = 1.0 / 60
    F = np.array([[1, dt, 0], [0, 1, dt], [0, 0, 1]])
    H = np.array([1, 0, 0]).reshape(1, 3)
    Q = np.array([[0.05, 0.05, 0.0], [0.05, 0.05, 0.0], [0.0, 0.0, 0.0]])
    R = np.array([0.5]).reshape(1, 1)
    kf = KalmanFilter(F=F, H=H, Q=Q, R=R, P=np.eye(3), x0=np.zeros((3, 1)))
    predictions = []
    for z in measurements:
        predictions.append(np.dot(H, kf.predict())[0])
        kf.update(z)
    return np.array(predictions)


@dataclass
class Particle:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0

    @property
    def kinetic_energy(self):
        return 0.5 * self.mass * np.dot(self.vel, self.vel)

    def kick(self, force, dt):
        self.vel = self.vel + force / self.mass * dt

    def drift(self, dt):
        self.pos = self.pos + self.vel * dt


@program("textbook", lambda rng: (rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), 0.01))
def simulate_particles(positions, velocities, dt):
    particles = [Particle(p, v, mass=m) for p, v, m in zip(positions, velocities, [1.0, 2.0, 0.5])]
    energies = np.zeros(5)
    for step in range(5):
        for i, a in enumerate(particles):
            force = np.zeros(2)
            for j, b in enumerate(particles):
                if i == j:
                    continue
                r = b.pos - a.pos
                force += a.mass * b.mass * r / (np.linalg.norm(r) ** 3 + 0.1)
            a.kick(force, dt)
        for a in particles:
            a.drift(dt)
        energies[step] = sum(p.kinetic_energy for p in particles)
    return energies, np.array([p.pos for p in particles])


class HMM:
    def __init__(self, A, B, pi):
        self.A, self.B, self.pi = A, B, pi

    def forward(self, obs):
        alpha = np.zeros((len(obs), len(self.pi)))
        alpha[0] = self.pi * self.B[:, obs[0]]
        for t in range(1, len(obs)):
            for j in range(len(self.pi)):
                alpha[t, j] = alpha[t - 1].dot(self.A[:, j]) * self.B[j, obs[t]]
        return alpha

    def backward(self, obs):
        T = len(obs)
        beta = np.zeros((T, len(self.pi)))
        beta[-1] = 1
        for t in range(T - 2, -1, -1):
            for j in range(len(self.pi)):
                beta[t, j] = (beta[t + 1] * self.B[:, obs[t + 1]]).dot(self.A[j, :])
        return beta

    def baum_welch(self, obs, n_iter=2):
        for _ in range(n_iter):
            alpha, beta = self.forward(obs), self.backward(obs)
            T, N = alpha.shape
            xi = np.zeros((N, N, T - 1))
            for t in range(T - 1):
                denominator = np.dot(
                    np.dot(alpha[t, :].T, self.A) * self.B[:, obs[t + 1]].T, beta[t + 1, :]
                )
                for i in range(N):
                    numerator = alpha[t, i] * self.A[i, :] * self.B[:, obs[t + 1]] * beta[t + 1]
                    xi[i, :, t] = numerator / denominator
            gamma = np.sum(xi, axis=1)
            self.A = np.sum(xi, 2) / np.sum(gamma, axis=1).reshape((-1, 1))
            gamma = np.hstack((gamma, np.sum(xi[:, :, T - 2], axis=0).reshape((-1, 1))))
            K = self.B.shape[1]
            denominator = np.sum(gamma, axis=1)
            B = np.zeros_like(self.B)
            for k in range(K):
                B[:, k] = np.sum(gamma[:, obs == k], axis=1)
            self.B = np.divide(B, denominator.reshape((-1, 1)))
        return self.A, self.B


def hmm_inputs(rng, T):
    a, b = rng.random((2, 2)) + 0.2, rng.random((2, 3)) + 0.2
    return (
        a / a.sum(axis=1, keepdims=True),
        b / b.sum(axis=1, keepdims=True),
        np.array([0.5, 0.5]),
        rng.integers(0, 3, T),
    )


@program("blog", hmm_inputs, 7, 10)
def baum_welch(A, B, pi, obs):
    model = HMM(A, B, pi)
    return model.baum_welch(obs)


class StandardScaler:
    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        self.scale_ = X.std(axis=0)
        self.scale_[self.scale_ == 0] = 1.0
        return self

    def transform(self, X):
        return (X - self.mean_) / self.scale_

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


class RidgeRegression:
    def __init__(self, alpha=1.0, fit_intercept=True):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.coef_ = None

    def fit(self, X, y):
        if self.fit_intercept:
            X = np.c_[np.ones(X.shape[0]), X]
        A = self.alpha * np.eye(X.shape[1])
        A[0, 0] = 0
        self.coef_ = np.linalg.pinv(X.T @ X + A) @ X.T @ y
        return self

    def predict(self, X):
        if self.coef_ is None:
            raise RuntimeError("fit the model first")
        if self.fit_intercept:
            X = np.c_[np.ones(X.shape[0]), X]
        return X @ self.coef_

    def score(self, X, y):
        residual = ((y - self.predict(X)) ** 2).sum()
        return 1 - residual / ((y - y.mean()) ** 2).sum()


@program("numpy-ml", lambda rng, n: (rng.random((n, 3)), rng.random(n), rng.random((4, 3))), 8, 13)
def ridge_pipeline(X, y, X_test):
    scaler = StandardScaler()
    Z = scaler.fit_transform(X)
    model = RidgeRegression(alpha=0.5).fit(Z, y)
    return model.predict(scaler.transform(X_test)), model.score(Z, y)


class DecisionNode:
    def __init__(self, feature=None, threshold=None, left=None, right=None, value=None):
        self.feature, self.threshold = feature, threshold
        self.left, self.right, self.value = left, right, value


class Grid:
    def __init__(self, nx=10, ny=10, xmin=0.0, xmax=1.0, ymin=0.0, ymax=1.0):
        self.dx = float(xmax - xmin) / (nx - 1)
        self.dy = float(ymax - ymin) / (ny - 1)
        self.u = np.zeros((nx, ny), "d")
        self.old_u = self.u.copy()

    def computeError(self):
        v = (self.u - self.old_u).flat
        return np.sqrt(np.dot(v, v))


class LaplaceSolver:
    """From the SciPy cookbook's page on performance."""

    def __init__(self, grid):
        self.grid = grid

    def numericTimeStep(self, dt=0.0):
        g = self.grid
        dx2, dy2 = g.dx**2, g.dy**2
        dnr_inv = 0.5 / (dx2 + dy2)
        u = g.u
        g.old_u = u.copy()
        u[1:-1, 1:-1] = (
            (u[0:-2, 1:-1] + u[2:, 1:-1]) * dy2 + (u[1:-1, 0:-2] + u[1:-1, 2:]) * dx2
        ) * dnr_inv
        return g.computeError()

    def solve(self, n_iter=0, eps=1.0e-16):
        err = self.numericTimeStep()
        count = 1
        while err > eps:
            if n_iter and count >= n_iter:
                return err
            err = self.numericTimeStep()
            count = count + 1
        return count


@program("scipy-cookbook", lambda rng, n: (rng.random(n), rng.random(n)), 6, 9)
def laplace_with_grid(top, bottom):
    grid = Grid(nx=len(top), ny=len(top))
    grid.u[0] = top
    grid.u[-1, :] = bottom
    solver = LaplaceSolver(grid)
    err = solver.solve(n_iter=8, eps=1e-12)
    return grid.u, err


class Polynomial:
    def __init__(self, coefficients):
        self.coefficients = np.atleast_1d(coefficients)

    def __call__(self, x):
        result = np.zeros_like(x)
        for c in self.coefficients[::-1]:
            result = result * x + c
        return result

    def __mul__(self, other):
        out = np.zeros(len(self.coefficients) + len(other.coefficients) - 1)
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(other.coefficients):
                out[i + j] += a * b
        return Polynomial(out)

    def deriv(self):
        n = np.arange(1, len(self.coefficients))
        return Polynomial(n * self.coefficients[1:])

    def __len__(self):
        return len(self.coefficients)


@program("textbook", lambda rng, n: (rng.random(n), rng.random(n - 1), rng.random(6)), 4, 6)
def polynomial_class(p, q, x):
    product = Polynomial(p) * Polynomial(q)
    return product(x), product.deriv()(x), len(product)
