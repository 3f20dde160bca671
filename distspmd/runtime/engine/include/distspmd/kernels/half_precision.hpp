// Numbers of 16 bits, which programs store and do not compute with: bfloat16 and float16 become float when
// they are loaded, and are rounded to the nearest, ties to even, when they are stored. The text of this file
// goes into the programs that have such numbers.
#ifndef DISTSPMD_HALF_PRECISION_HPP
#define DISTSPMD_HALF_PRECISION_HPP

#include <cstdint>
#include <cstring>

#ifndef DISTSPMD_EVERYWHERE
#ifdef __CUDACC__
#define DISTSPMD_EVERYWHERE __host__ __device__
#else
#define DISTSPMD_EVERYWHERE
#endif
#endif

DISTSPMD_EVERYWHERE inline std::uint32_t distspmd_float_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

DISTSPMD_EVERYWHERE inline float distspmd_float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

DISTSPMD_EVERYWHERE inline float distspmd_bfloat16_value(std::uint16_t bits) {
  return distspmd_float_of(static_cast<std::uint32_t>(bits) << 16);
}

DISTSPMD_EVERYWHERE inline std::uint16_t distspmd_bfloat16_bits(float value) {
  const std::uint32_t bits = distspmd_float_bits(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(is_nan ? 0x7fc0u : rounded);
}

/// Normal numbers move by the difference of the exponents' biases; a product with a power of two also
/// makes the subnormal ones.
DISTSPMD_EVERYWHERE inline float distspmd_float16_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const bool is_finite = rest < 0x0f800000u;
  const std::uint32_t scaled = distspmd_float_bits(distspmd_float_of(rest) * 0x1.0p112f);
  return distspmd_float_of(sign | (is_finite ? scaled : (0x7f800000u | rest)));
}

/// A sum with a power of two whose last bit is that of the result rounds what is subnormal there.
DISTSPMD_EVERYWHERE inline std::uint16_t distspmd_float16_bits(float value) {
  const std::uint32_t bits = distspmd_float_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  const std::uint32_t normal = (rest - (112u << 23) + 0x0fffu + ((rest >> 13) & 1u)) >> 13;
  const std::uint32_t small = distspmd_float_bits(distspmd_float_of(rest) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = rest < (113u << 23) ? small : normal;
  const std::uint32_t large = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return static_cast<std::uint16_t>(sign | (rest >= (143u << 23) ? large : finite));
}

#endif
