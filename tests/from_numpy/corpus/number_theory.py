"""Number theory and puzzles of integers."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("number theory")


@program("SciPy lecture notes", lambda rng, n: (n,), 30, 97)
def sieve(n):
    is_prime = np.ones((n,), dtype=bool)
    # cross out 0 and 1 which are not primes
    is_prime[:2] = 0
    # cross out multiples of each number
    N_max = int(np.sqrt(len(is_prime) - 1))
    for j in range(2, N_max + 1):
        is_prime[2 * j :: j] = False
    return is_prime


@program("stackoverflow", lambda rng, n: (n,), 31, 50)
def primes_below(n):
    mark = np.ones(n // 2, dtype=bool)
    for i in range(3, int(n**0.5) + 1, 2):
        if mark[i // 2]:
            mark[i * i // 2 :: i] = False
    return np.r_[2, 2 * np.nonzero(mark)[0][1::] + 1]


@program("textbook", lambda rng, n: (rng.integers(1, 200, n), rng.integers(1, 200, n)), 9, 14)
def gcd_of_pairs(a, b):
    out = np.zeros(len(a), dtype=a.dtype)
    for i in range(len(a)):
        x, y = a[i], b[i]
        while y:
            x, y = y, x % y
        out[i] = x
    return out, np.gcd(a, b), a * b // out


@program("wikipedia", lambda rng, n: (n,), 13, 20)
def collatz_lengths(limit):
    lengths = np.zeros(limit, dtype=int)
    for start in range(1, limit):
        n, count = start, 1
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        lengths[start] = count
    return lengths, lengths.argmax()


@program("blog", lambda rng, n: (np.arange(1, n + 1),), 11, 18)
def collatz_vectorised(n):
    steps = np.zeros_like(n)
    active = n > 1
    while np.any(active):
        odd = active & (n % 2 == 1)
        even = active & (n % 2 == 0)
        n[odd] = 3 * n[odd] + 1
        n[even] //= 2
        steps[active] += 1
        active = n > 1
    return steps


@program("textbook", lambda rng, n: (n,), 20, 33)
def totients(n):
    phi = np.arange(n + 1)
    for p in range(2, n + 1):
        if phi[p] == p:
            phi[p::p] -= phi[p::p] // p
    return phi


@program("textbook", lambda rng, n: (n,), 30, 50)
def perfect_numbers(limit):
    divisor_sum = np.zeros(limit + 1, dtype=np.int64)
    for d in range(1, limit // 2 + 1):
        divisor_sum[2 * d :: d] += d
    n = np.arange(limit + 1)
    return n[(n > 0) & (divisor_sum == n)], (divisor_sum > n).sum()


@program("rosetta code", lambda rng, b, e, m: (b, e, m), (7, 23, 101), (3, 45, 1009))
def modular_power(base, exponent, modulus):
    result = 1
    base %= modulus
    while exponent:
        if exponent & 1:
            result = result * base % modulus
        exponent >>= 1
        base = base * base % modulus
    return result


@program("project euler", lambda rng, n: (n,), 25, 40)
def pythagorean_triples(n):
    a, b = np.meshgrid(np.arange(1, n), np.arange(1, n), indexing="ij")
    c = np.sqrt(a**2 + b**2).astype(int)
    ok = (a < b) & (c**2 == a**2 + b**2) & (c < n)
    return np.column_stack((a[ok], b[ok], c[ok]))


@program("textbook", lambda rng, n: (n,), 20, 31)
def moebius(n):
    mu = np.ones(n + 1, dtype=np.int8)
    mu[0] = 0
    prime = np.ones(n + 1, dtype=bool)
    for i in range(2, n + 1):
        if prime[i]:
            prime[2 * i :: i] = False
            mu[i::i] *= -1
            mu[i * i :: i * i] = 0
    return mu, np.cumsum(mu)


@program("numerical recipes", lambda rng, n: (12345, n), 6, 13)
def linear_congruential(seed, n):
    state = np.uint32(seed)
    out = np.empty(n, dtype=np.uint32)
    for i in range(n):
        state = np.uint32((int(state) * 1664525 + 1013904223) % 2**32)
        out[i] = state
    return out, out / 2.0**32


@program("wikipedia", lambda rng, n: (np.arange(1, n + 1, dtype=np.uint32), 4), 5, 9)
def xorshift32(state, rounds):
    for _ in range(rounds):
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
    return state


@program("project euler", lambda rng, n: (n,), 12, 20)
def fibonacci_even_sum(n):
    fib = np.empty(n, dtype=np.int64)
    fib[0:2] = 1, 2
    for i in range(2, n):
        fib[i] = fib[i - 1] + fib[i - 2]
    phi = (1 + np.sqrt(5)) / 2
    return fib, fib[fib % 2 == 0].sum(), abs(fib[-1] / fib[-2] - phi) < 1e-3


@program("stackoverflow", lambda rng, n: (rng.integers(0, 10**6, n),), 7, 12)
def digits(numbers):
    powers = 10 ** np.arange(5, -1, -1)
    d = numbers[:, None] // powers % 10
    palindrome = (d == d[:, ::-1]).all(axis=1)
    return d.sum(axis=1), palindrome, np.bincount(d.ravel(), minlength=10)


@program("Cython tutorial", lambda rng, n: (n,), 8, 15)
def first_primes(nb_primes):
    p = np.zeros(nb_primes, dtype=np.intc)
    len_p = 0
    n = 2
    while len_p < nb_primes:
        for i in p[:len_p]:
            if n % i == 0:
                break
        else:
            p[len_p] = n
            len_p += 1
        n += 1
    return p
