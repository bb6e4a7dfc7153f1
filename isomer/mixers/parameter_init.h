#pragma once
// How the parameters of mixers and other modules start, as data; nn/init.h draws the numbers.
#include <cstdint>
#include <string>
#include <vector>

namespace isomer::graph {

/// How a parameter starts.
struct Init {
  enum class Kind : std::uint8_t {
    constant,          // a
    normal,            // mean a, deviation b
    uniform,           // from a to b
    log_uniform,       // the logarithm of a uniform number from a to b
    softplus_inverse,  // softplus of it is log-uniform from a to b (steps of state-space models)
    linspace,          // from a to b over the elements
    log_range,         // log(1 … size) along the last axis (S4D-real)
    ring,              // log(−log r), r uniform in area between the radii a and b (LRU)
    ring_root,         // log √(1 − r²) of such radii (LRU)
    gate_ring,         // x with exp(−softplus(x)) uniform in area between a and b (RG-LRU)
    identity,          // a times the unit matrix, of each head
    near_identity,     // the same, plus normal numbers of deviation b
    orthogonal,        // rows of random orthogonal blocks with the lengths of normal vectors (Performer)
    semi_orthogonal,   // a times a random matrix with orthonormal rows or columns, whichever are fewer (RWKV)
    sines,             // of positions: sin(t·f) in the first half of row t, cos(t·f) in the second, f from 1 to 1/10,000
    list,              // `values`, one for each head or element
  };
  Kind kind = Kind::normal;
  double a = 0, b = 0.02;
  std::vector<double> values = {};
  std::string beside = {};  // of the parameter in the same layer whose random numbers it is drawn from; empty: its own
};

[[nodiscard]] inline Init constant(double value) { return {.kind = Init::Kind::constant, .a = value}; }
[[nodiscard]] inline Init normal(double deviation) { return {.kind = Init::Kind::normal, .a = 0, .b = deviation}; }

enum class Training : std::uint8_t { trained, fixed };

}  // namespace isomer::graph
