// Random numbers from a counter: a number depends on a seed, on which of a program's draws it is, and on
// the place of the element in the whole array; not on how many ranks or threads there are, or in which
// order they run. The text of this file goes into the programs that draw.
#ifndef DISTSPMD_RANDOM_HPP
#define DISTSPMD_RANDOM_HPP

#include <cstdint>

#ifndef DISTSPMD_EVERYWHERE
#ifdef __CUDACC__
#define DISTSPMD_EVERYWHERE __host__ __device__
#else
#define DISTSPMD_EVERYWHERE
#endif
#endif

/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
DISTSPMD_EVERYWHERE inline std::uint64_t distspmd_mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A number of [0, 1), with 53 random bits.
DISTSPMD_EVERYWHERE inline double distspmd_uniform(std::int64_t seed, std::int64_t draw, std::int64_t place) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
  const std::uint64_t stream =
      distspmd_mixed(static_cast<std::uint64_t>(seed) + golden * static_cast<std::uint64_t>(draw));
  const std::uint64_t bits =
      distspmd_mixed(stream + golden * (static_cast<std::uint64_t>(place) + 1));
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

#endif
