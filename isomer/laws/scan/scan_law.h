#pragma once
// `scan` as everything above the laws sees it; C++ programs use scan.h.
#include "isomer/laws/bound_law.h"
#include "isomer/laws/scan/scan.h"

namespace isomer {

[[nodiscard]] const Law& scan_law();

/// The plain scan, or S6 where its inputs are there.
class BoundScan final : public BoundLaw {
 public:
  explicit BoundScan(const ScanOptions& options = {}) : options_(options) {}

  [[nodiscard]] const Law& law() const override { return scan_law(); }
  [[nodiscard]] Settings settings() const override { return {}; }
  [[nodiscard]] bool uses(std::string_view tensor, Given given) const override;
  [[nodiscard]] bool needs(const TensorSpec& spec, Given given) const override;
  [[nodiscard]] std::span<const Axes> axes(const TensorSpec& spec, Given given) const override;
  void forward(const LawViews& in, const LawViews& out, const LawRun& run) const override;
  void backward(const LawViews& in, const LawViews& out, const LawViews& grad_out, const LawViews& grad_in,
                const LawRun& run) const override;
  [[nodiscard]] Choice plan(const LawSizes& sizes, Given given, bool taped) const override;
  [[nodiscard]] std::string plan_reason(const LawSizes& sizes, const Choice& choice) const override;
  [[nodiscard]] double flops(const LawSizes& sizes, Given given, LawPass pass, Form form) const override;
  [[nodiscard]] StateDimension state_dimension(const LawSizes& sizes, Given given) const override;
  [[nodiscard]] std::vector<std::string> equations(Given given) const override;
  [[nodiscard]] std::vector<std::string_view> written() const override { return {"x", "x_imag"}; }
  [[nodiscard]] Dsf system(const DsfSource& from) const override;
  [[nodiscard]] std::string_view symbol(const TensorSpec& input, Given given) const override;

 private:
  ScanOptions options_;
};

namespace scan_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
}  // namespace scan_detail

}  // namespace isomer
