// The largest and the smallest of numbers as NumPy has them: a NaN wins, in every order.
//
// Programs of DaCe call `max` and `min`, and resolve write conflicts by `dace::wcr_fixed`, whose
// comparisons would lose a NaN. Both are found here in their place, for floating-point numbers;
// this file stands behind dace/dace.h, before all code of a program.
#pragma once

#include <type_traits>

namespace distspmd {

template <class T>
inline constexpr T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
inline constexpr T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

/// The type in which numbers are compared, if one of them has a fraction.
template <class... Ts>
using common_float =
    typename std::enable_if_t<(std::is_arithmetic_v<Ts> && ...) && (std::is_floating_point_v<Ts> || ...),
                              std::common_type<Ts...>>::type;

template <class T>
struct Maximum {
  constexpr T operator()(T a, T b) const { return maximum(a, b); }
};
template <class T>
struct Minimum {
  constexpr T operator()(T a, T b) const { return minimum(a, b); }
};

/// What DaCe calls to write where others write.
template <class Function, class T>
struct Conflict : Function {
  static T reduce(T *into, const T &value) {
    return dace::wcr_custom<T>::reduce(Function(), into, value);
  }
  static T reduce_atomic(T *into, const T &value) {
    return dace::wcr_custom<T>::reduce_atomic(Function(), into, value);
  }
};

}  // namespace distspmd

template <class A, class B>
inline constexpr distspmd::common_float<A, B> max(const A &a, const B &b) {
  return distspmd::maximum<distspmd::common_float<A, B>>(a, b);
}
template <class A, class B, class C, class... More>
inline constexpr distspmd::common_float<A, B, C, More...> max(const A &a, const B &b, const C &c,
                                                             const More &...more) {
  using T = distspmd::common_float<A, B, C, More...>;
  return max(max(T(a), T(b)), T(c), T(more)...);
}
template <class A, class B>
inline constexpr distspmd::common_float<A, B> min(const A &a, const B &b) {
  return distspmd::minimum<distspmd::common_float<A, B>>(a, b);
}
template <class A, class B, class C, class... More>
inline constexpr distspmd::common_float<A, B, C, More...> min(const A &a, const B &b, const C &c,
                                                             const More &...more) {
  using T = distspmd::common_float<A, B, C, More...>;
  return min(min(T(a), T(b)), T(c), T(more)...);
}

namespace dace {
template <>
struct wcr_fixed<ReductionType::Max, float> : distspmd::Conflict<distspmd::Maximum<float>, float> {};
template <>
struct wcr_fixed<ReductionType::Max, double>
    : distspmd::Conflict<distspmd::Maximum<double>, double> {};
template <>
struct wcr_fixed<ReductionType::Min, float> : distspmd::Conflict<distspmd::Minimum<float>, float> {};
template <>
struct wcr_fixed<ReductionType::Min, double>
    : distspmd::Conflict<distspmd::Minimum<double>, double> {};
}  // namespace dace
