#pragma once
// `delta` as everything above the laws sees it; C++ programs use delta.h.
#include "isomer/laws/bound_law.h"
#include "isomer/laws/delta/delta.h"

namespace isomer {

[[nodiscard]] const Law& delta_law();

class BoundDelta final : public BoundLaw {
 public:
  explicit BoundDelta(const DeltaOptions& options = {});
  [[nodiscard]] const DeltaOptions& options() const { return options_; }

  [[nodiscard]] const Law& law() const override { return delta_law(); }
  [[nodiscard]] Settings settings() const override;
  [[nodiscard]] std::span<const Axes> axes(const TensorSpec& spec, Given given) const override;
  void forward(const LawViews& in, const LawViews& out, const LawRun& run) const override;
  void backward(const LawViews& in, const LawViews& out, const LawViews& grad_out, const LawViews& grad_in,
                const LawRun& run) const override;
  [[nodiscard]] Choice plan(const LawSizes& sizes, Given given, bool taped) const override;
  [[nodiscard]] double flops(const LawSizes& sizes, Given given, LawPass pass, Form form) const override;
  [[nodiscard]] std::vector<std::string> equations(Given given) const override;
  [[nodiscard]] Dsf system(const DsfSource& from) const override;

 private:
  DeltaOptions options_;
};

namespace delta_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
}  // namespace delta_detail

}  // namespace isomer
