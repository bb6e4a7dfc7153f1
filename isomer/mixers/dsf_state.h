#pragma once
// The state of a dynamical system (dsf.h) as it reads a sequence: how full it is, and what a token leaves of it and writes to it.
//
//   const Signal u = written(law, inputs, place);
//   const StateCurve curve = state_curve(system, u);              // of every token
//   const StateMoment now = state_moment(system, u, t);           // h_t = now.kept + now.written
#include "isomer/mixers/dsf.h"

namespace isomer {

struct StateCurve {
  std::vector<double> norm;  // [T] ‖h_t‖
  std::vector<double> rank;  // [T] the stable rank ‖h_t‖² / ‖h_t‖₂²: how many directions the state has
  std::vector<double> kept;  // [T] ‖Λ_t h_{t−1}‖ / ‖h_{t−1}‖: less than 1 where the token forgets; 0 before there is a state
  std::vector<double> written;  // [T] ‖B_t u_t‖
};
[[nodiscard]] StateCurve state_curve(const Dsf& system, const Signal& u);

/// [channels, features] each.
struct StateMoment {
  std::vector<Complex> kept;     // Λ_t h_{t−1}
  std::vector<Complex> written;  // B_t u_t
};
[[nodiscard]] StateMoment state_moment(const Dsf& system, const Signal& u, Index t);

}  // namespace isomer
