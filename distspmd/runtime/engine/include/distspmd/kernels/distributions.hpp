// Random numbers of distributions that take as many uniform ones as it happens to need: by rejection, or
// by a search. Each element has numbers of its own, so that it does not depend on others, nor on ranks.
// Parameters that no distribution has give NaN. The text of this file stands behind that of counter_rng.hpp.
#ifndef DISTSPMD_DISTRIBUTIONS_HPP
#define DISTSPMD_DISTRIBUTIONS_HPP

#include <cmath>
#include <cstdint>

/// The numbers of [0, 1) of one element of a draw, one after the other.
struct distspmd_numbers {
  std::uint64_t key, count;

  DISTSPMD_EVERYWHERE distspmd_numbers(std::int64_t seed, std::int64_t draw, std::int64_t place) : count(0) {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
    const std::uint64_t stream =
        distspmd_mixed(static_cast<std::uint64_t>(seed) + golden * static_cast<std::uint64_t>(draw));
    key = distspmd_mixed(stream + golden * (static_cast<std::uint64_t>(place) + 1));
  }

  DISTSPMD_EVERYWHERE double next() {
    const std::uint64_t bits = distspmd_mixed(key + 0x9e3779b97f4a7c15u * ++count);
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
  }

  /// Of (0, 1].
  DISTSPMD_EVERYWHERE double positive() { return 1.0 - next(); }

  DISTSPMD_EVERYWHERE double normal() {
    const double radius = std::sqrt(-2.0 * std::log(positive()));
    return radius * std::cos(6.283185307179586 * next());
  }
};

DISTSPMD_EVERYWHERE inline double distspmd_no_number() { return NAN; }

/// The logarithm of a number of the gamma distribution (Marsaglia and Tsang, 2000), which may be tiny.
DISTSPMD_EVERYWHERE inline double distspmd_log_gamma_draw(std::int64_t seed, std::int64_t draw, std::int64_t place,
                                                          double shape) {
  if (!(shape >= 0.0)) return distspmd_no_number();
  if (shape == 0.0) return -INFINITY;
  distspmd_numbers numbers(seed, draw, place);
  const double less = shape < 1.0 ? std::log(numbers.positive()) / shape : 0.0;
  const double d = (shape < 1.0 ? shape + 1.0 : shape) - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = numbers.normal();
    const double root = 1.0 + c * x;
    if (root <= 0.0) continue;
    const double v = root * root * root;
    if (std::log(numbers.positive()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v) + less;
  }
}

DISTSPMD_EVERYWHERE inline double distspmd_gamma_draw(std::int64_t seed, std::int64_t draw, std::int64_t place,
                                                      double shape) {
  return std::exp(distspmd_log_gamma_draw(seed, draw, place, shape));
}

/// Poisson's distribution: few by products, many by transformed rejection (Hoermann, 1993).
DISTSPMD_EVERYWHERE inline double distspmd_poisson_draw(std::int64_t seed, std::int64_t draw, std::int64_t place,
                                                        double mean) {
  if (!(mean >= 0.0) || mean > 9.2e18) return distspmd_no_number();
  distspmd_numbers numbers(seed, draw, place);
  if (mean < 10.0) {
    const double limit = std::exp(-mean);
    double product = numbers.next(), count = 0.0;
    while (product > limit) {
      product *= numbers.next();
      count += 1.0;
    }
    return count;
  }
  const double root = std::sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse = 1.1239 + 1.1328 / (b - 3.4), most = 0.9277 - 3.6224 / (b - 2.0);
  for (;;) {
    const double u = numbers.next() - 0.5, v = numbers.positive();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2.0 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= most) return k;
    if (!(k >= 0.0) || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse) - std::log(a / (us * us) + b) <=
        -mean + k * std::log(mean) - std::lgamma(k + 1.0))
      return k;
  }
}

/// How often something of a probability happens: few by inversion, many by transformed rejection.
DISTSPMD_EVERYWHERE inline double distspmd_binomial_draw(std::int64_t seed, std::int64_t draw, std::int64_t place,
                                                         double n, double chance) {
  if (!(n >= 0.0) || !(chance >= 0.0 && chance <= 1.0)) return distspmd_no_number();
  const double p = chance <= 0.5 ? chance : 1.0 - chance;
  if (n == 0.0 || p == 0.0) return chance <= 0.5 ? 0.0 : n;
  distspmd_numbers numbers(seed, draw, place);
  const double odds = p / (1.0 - p);
  double found = 0.0;
  if (n * p < 10.0) {
    const double first = std::exp(n * std::log1p(-p));
    double rest = numbers.next(), term = first;
    while (rest > term) {
      rest -= term;
      found += 1.0;
      if (found > n) {
        rest = numbers.next();
        term = first;
        found = 0.0;
        continue;
      }
      term *= ((n + 1.0) / found - 1.0) * odds;
    }
  } else {
    const double spread = std::sqrt(n * p * (1.0 - p)), b = 1.15 + 2.53 * spread;
    const double a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, most = 0.92 - 4.2 / b;
    const double alpha = (2.83 + 5.1 / b) * spread, mode = std::floor((n + 1.0) * p);
    const double h = std::lgamma(mode + 1.0) + std::lgamma(n - mode + 1.0);
    for (;;) {
      const double u = numbers.next() - 0.5, v = numbers.positive();
      const double us = 0.5 - std::fabs(u);
      found = std::floor((2.0 * a / us + b) * u + c);
      if (us >= 0.07 && v <= most) break;
      if (!(found >= 0.0 && found <= n)) continue;
      const double bound =
          h - std::lgamma(found + 1.0) - std::lgamma(n - found + 1.0) + (found - mode) * std::log(odds);
      if (std::log(v * alpha / (a / (us * us) + b)) <= bound) break;
    }
  }
  return chance <= 0.5 ? found : n - found;
}

/// How many of a sample are good, where nothing is put back.
DISTSPMD_EVERYWHERE inline double distspmd_hypergeometric_draw(std::int64_t seed, std::int64_t draw,
                                                               std::int64_t place, double good, double bad,
                                                               double sample) {
  if (!(good >= 0.0 && bad >= 0.0 && sample >= 0.0 && sample <= good + bad)) return distspmd_no_number();
  distspmd_numbers numbers(seed, draw, place);
  double found = 0.0;
  for (double left = good + bad; sample > 0.0; sample -= 1.0, left -= 1.0)
    if (numbers.next() * left < good - found) found += 1.0;
  return found;
}

/// An angle around zero (Best and Fisher, 1979).
DISTSPMD_EVERYWHERE inline double distspmd_von_mises_draw(std::int64_t seed, std::int64_t draw, std::int64_t place,
                                                          double kappa) {
  constexpr double pi = 3.141592653589793;
  if (!(kappa >= 0.0)) return distspmd_no_number();
  distspmd_numbers numbers(seed, draw, place);
  if (kappa < 1e-8) return pi * (2.0 * numbers.next() - 1.0);
  if (kappa > 1e6) return numbers.normal() / std::sqrt(kappa);
  const double r = 1.0 + std::sqrt(1.0 + 4.0 * kappa * kappa);
  const double rho = (r - std::sqrt(2.0 * r)) / (2.0 * kappa);
  const double s = kappa < 1e-5 ? 1.0 / kappa + kappa : (1.0 + rho * rho) / (2.0 * rho);
  for (;;) {
    const double z = std::cos(pi * numbers.next());
    const double w = (1.0 + s * z) / (s + z), y = kappa * (s - w), v = numbers.positive();
    if (y * (2.0 - y) - v >= 0.0 || std::log(y / v) + 1.0 - y >= 0.0) {
      const double angle = std::acos(w < -1.0 ? -1.0 : w > 1.0 ? 1.0 : w);
      return numbers.next() < 0.5 ? -angle : angle;
    }
  }
}

/// Zipf's distribution, by rejection.
DISTSPMD_EVERYWHERE inline double distspmd_zipf_draw(std::int64_t seed, std::int64_t draw, std::int64_t place,
                                                     double a) {
  if (!(a > 1.0)) return distspmd_no_number();
  distspmd_numbers numbers(seed, draw, place);
  const double less = a - 1.0, b = std::pow(2.0, less);
  for (;;) {
    const double u = numbers.positive(), v = numbers.next();
    const double x = std::floor(std::pow(u, -1.0 / less));
    if (!(x >= 1.0 && x < 9.2e18)) continue;
    const double t = std::pow(1.0 + 1.0 / x, less);
    if (v * x * (t - 1.0) / (b - 1.0) <= t / b) return x;
  }
}

/// The logarithmic series (Kemp, 1981).
DISTSPMD_EVERYWHERE inline double distspmd_log_series_draw(std::int64_t seed, std::int64_t draw, std::int64_t place,
                                                           double p) {
  if (!(p >= 0.0 && p < 1.0)) return distspmd_no_number();
  distspmd_numbers numbers(seed, draw, place);
  const double r = std::log1p(-p);
  for (;;) {
    const double v = numbers.positive();
    if (v >= p) return 1.0;
    const double q = -std::expm1(r * numbers.positive());
    if (v <= q * q) {
      const double found = std::floor(1.0 + std::log(v) / std::log(q));
      if (found >= 1.0) return found;
      continue;
    }
    return v >= q ? 1.0 : 2.0;
  }
}

#endif
