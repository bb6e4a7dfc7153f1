#pragma once
// `scalar_decay` as everything above the laws sees it; C++ programs use scalar_decay.h.
#include "isomer/laws/bound_law.h"
#include "isomer/laws/scalar_decay/scalar_decay.h"

namespace isomer {

[[nodiscard]] const Law& scalar_decay_law();

class BoundScalarDecay final : public BoundLaw {
 public:
  explicit BoundScalarDecay(const ScalarDecayOptions& options = {});
  [[nodiscard]] const ScalarDecayOptions& options() const { return options_; }

  [[nodiscard]] const Law& law() const override { return scalar_decay_law(); }
  [[nodiscard]] Settings settings() const override;
  [[nodiscard]] bool causal() const override;
  [[nodiscard]] bool skips_empty_keys() const override;
  [[nodiscard]] bool uses(std::string_view tensor, Given given) const override;
  void forward(const LawViews& in, const LawViews& out, const LawRun& run) const override;
  void backward(const LawViews& in, const LawViews& out, const LawViews& grad_out, const LawViews& grad_in,
                const LawRun& run) const override;
  [[nodiscard]] Choice plan(const LawSizes& sizes, Given given, bool taped) const override;
  [[nodiscard]] std::string plan_reason(const LawSizes& sizes, const Choice& choice) const override;
  [[nodiscard]] double flops(const LawSizes& sizes, Given given, LawPass pass, Form form) const override;
  [[nodiscard]] StateDimension state_dimension(const LawSizes& sizes, Given given) const override;
  [[nodiscard]] std::vector<std::string> equations(Given given) const override;
  [[nodiscard]] Dsf system(const DsfSource& from) const override;

 private:
  ScalarDecayOptions options_;
};

namespace scalar_decay_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
}  // namespace scalar_decay_detail

}  // namespace isomer
