"""Monte Carlo methods, with the draws passed in."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("monte carlo")


@program("numba", lambda rng, n: (rng.random(n), rng.random(n)), 50, 77)
def monte_carlo_pi(xs, ys):
    acc = 0
    for i in range(len(xs)):
        x = xs[i]
        y = ys[i]
        if (x**2 + y**2) < 1.0:
            acc += 1
    return 4.0 * acc / len(xs)


@program(
    "SciPy lecture notes",
    lambda rng, n, t: (2 * rng.integers(0, 1 + 1, (n, t)) - 1,),
    (9, 13),
    (20, 7),
)
def random_walks(steps):
    assert np.all(np.unique(steps) == np.array([-1, 1]))  # all steps are 1 or -1
    positions = np.cumsum(steps, axis=1)
    sq_distance = positions**2
    return np.sqrt(np.mean(sq_distance, axis=0))


@program(
    "SciPy lecture notes", lambda rng, n, t: (rng.integers(0, 2, (n, t)), 3), (9, 13), (12, 21)
)
def first_passage(flips, distance):
    walk = np.where(flips > 0, 1, -1).cumsum(axis=1)
    hits = (np.abs(walk) >= distance).any(1)
    crossing_times = (np.abs(walk[hits]) >= distance).argmax(1)
    return hits.sum(), crossing_times.mean()


@program("textbook", lambda rng, n: (rng.random(n), rng.random(n)), 60, 101)
def buffon(d, theta, length=1.0, spacing=1.0):
    angle = theta * np.pi / 2
    half = d * spacing / 2
    crossings = np.count_nonzero(half <= length / 2 * np.sin(angle))
    return 2 * length * d.size / (spacing * crossings)


@program("wikipedia", lambda rng, n: (rng.normal(size=n), rng.random(n)), 40, 63)
def metropolis_hastings(steps, uniforms):
    def target(x):
        return np.exp(-(x**2) / 2) * (1 + np.sin(3 * x) ** 2)

    x = 0.0
    samples = []
    accepted = 0
    for k in range(len(steps)):
        proposal = x + 0.8 * steps[k]
        if uniforms[k] < target(proposal) / target(x):
            x = proposal
            accepted += 1
        samples.append(x)
    return np.array(samples), accepted / len(steps)


@program("blog", lambda rng, n: (rng.uniform(-4, 4, n),), 30, 47)
def importance_sampling(x):
    p = np.exp(-0.5 * (x - 1) ** 2)
    q = np.full_like(x, 1 / 8)
    w = p / q
    w /= w.sum()
    ess = 1.0 / np.sum(w**2)
    return np.sum(w * x), np.sum(w * x**2) - np.sum(w * x) ** 2, ess


@program("blog", lambda rng, n: (rng.random((n, 2)),), 40, 55)
def rejection_sampling(u):
    x = u[:, 0] * 2 - 1
    keep = u[:, 1] < 1 - x**2
    sample = x[keep]
    return len(sample), sample.mean(), sample.var()


@program("systems biology course", lambda rng, n: (rng.random((n, 2)), 10), 30, 44)
def gillespie_birth_death(draws, x0, k_birth=2.0, k_death=0.1, t_max=5.0):
    t, x = 0.0, x0
    times, counts = np.zeros(len(draws)), np.zeros(len(draws), dtype=int)
    used = 0
    for i, (u1, u2) in enumerate(draws):
        rates = np.array([k_birth, k_death * x])
        total = rates.sum()
        t += -np.log(u1) / total
        if t > t_max:
            break
        x += 1 if u2 * total < rates[0] else -1
        times[i], counts[i] = t, x
        used = i + 1
    return times, counts, used


@program("physics course", lambda rng, n, t: (rng.normal(size=(t, n, 2)), 0.01), (7, 13), (11, 8))
def brownian_msd(noise, dt):
    displacement = np.sqrt(2 * dt) * noise
    paths = np.concatenate((np.zeros((1,) + noise.shape[1:]), displacement.cumsum(axis=0)))
    msd = ((paths - paths[0]) ** 2).sum(axis=-1).mean(axis=-1)
    return paths[-1], msd


@program("textbook", lambda rng, n, k: (rng.integers(0, 50, (n, k)),), (40, 9), (25, 13))
def birthday_problem(birthdays):
    s = np.sort(birthdays, axis=1)
    shared = np.any(s[:, 1:] == s[:, :-1], axis=1)
    return shared.mean()


@program("statistics course", lambda rng, n: (rng.random((n, 4)),), 30, 49)
def antithetic_integral(u):
    f = lambda x: np.exp(-x.sum(axis=-1))
    plain = f(u)
    paired = 0.5 * (f(u) + f(1 - u))
    return plain.mean(), paired.mean(), plain.var() / paired.var()


@program(
    "population genetics course", lambda rng, n, t: (rng.random((t, n)), 0.3), (20, 9), (13, 15)
)
def wright_fisher(draws, p0):
    n = draws.shape[1]
    freq = [p0]
    for generation in draws:
        p = np.sum(generation < freq[-1]) / n
        freq.append(p)
        if p == 0 or p == 1:
            break
    return freq[-1], len(freq)


@program("blog", lambda rng, n: (rng.random(n), np.array([0.1, 0.2, 0.3, 0.4])), 15, 31)
def inverse_transform(u, probs):
    cdf = np.cumsum(probs)
    samples = np.searchsorted(cdf, u)
    return samples, np.bincount(samples, minlength=len(probs)) / len(u)


@program(
    "particle filter blog",
    lambda rng, n, t: (rng.normal(size=(t, n)), rng.normal(size=t), rng.random(t)),
    (13, 6),
    (20, 4),
)
def particle_filter(noise, observations, offsets):
    n = noise.shape[1]
    particles = np.zeros(n)
    estimates = np.empty(len(observations))
    for t, z in enumerate(observations):
        particles = 0.9 * particles + 0.5 * noise[t]
        weights = np.exp(-0.5 * (z - particles) ** 2)
        weights /= np.sum(weights)
        estimates[t] = np.dot(weights, particles)
        # systematic resampling
        positions = (np.arange(n) + offsets[t]) / n
        cumulative = np.cumsum(weights)
        cumulative[-1] = 1.0
        indexes = np.zeros(n, "i")
        i, j = 0, 0
        while i < n:
            if positions[i] < cumulative[j]:
                indexes[i] = j
                i += 1
            else:
                j += 1
        particles = particles[indexes]
    return estimates
