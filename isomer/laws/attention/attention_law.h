#pragma once
// `attention` as everything above the laws sees it; C++ programs use attention.h.
#include "isomer/laws/attention/attention.h"
#include "isomer/laws/bound_law.h"

namespace isomer {

[[nodiscard]] const Law& attention_law();

class BoundAttention final : public BoundLaw {
 public:
  explicit BoundAttention(const AttentionOptions& options = {});
  [[nodiscard]] const AttentionOptions& options() const { return options_; }

  [[nodiscard]] const Law& law() const override { return attention_law(); }
  [[nodiscard]] Settings settings() const override;
  [[nodiscard]] bool causal() const override;
  [[nodiscard]] bool counts_distances(Given given) const override;
  [[nodiscard]] bool uses(std::string_view tensor, Given given) const override;
  void forward(const LawViews& in, const LawViews& out, const LawRun& run) const override;
  void backward(const LawViews& in, const LawViews& out, const LawViews& grad_out, const LawViews& grad_in,
                const LawRun& run) const override;
  [[nodiscard]] std::string plan_reason(const LawSizes& sizes, const Choice& choice) const override;
  [[nodiscard]] double flops(const LawSizes& sizes, Given given, LawPass pass, Form form) const override;
  [[nodiscard]] StateSize state_size(const LawSizes& sizes, Given given) const override;
  [[nodiscard]] double taped_floats(const LawSizes& sizes, Given given) const override;
  [[nodiscard]] StateDimension state_dimension(const LawSizes& sizes, Given given) const override;
  [[nodiscard]] std::unique_ptr<LawStream> start(Type type, const LawSizes& sizes) const override;
  void stream(const LawViews& in, const LawViews& out, LawStream& stream, Context& context) const override;
  [[nodiscard]] std::vector<std::string> equations(Given given) const override;
  [[nodiscard]] Dsf system(const DsfSource& from) const override;

 private:
  AttentionOptions options_;
};

/// The state of a stream: attention.h's own.
template <class T>
struct AttentionStream final : LawStream {
  AttentionState<T> state;

  explicit AttentionStream(AttentionState<T> own) : state(std::move(own)) {}
  [[nodiscard]] std::unique_ptr<LawStream> clone() const override { return std::make_unique<AttentionStream>(state); }
  [[nodiscard]] Index bytes() const override { return state.bytes(); }
  void add_to(Tensors& tensors, const std::string& prefix) const override { state.add_to(tensors, prefix); }
  void assign(const Tensors& tensors, const std::string& prefix) override { state.assign(tensors, prefix); }
};

namespace attention_detail {
[[nodiscard]] std::vector<BenchCase> bench_cases(bool quick);
[[nodiscard]] BenchWork prepare_bench(const BenchCase& what);
}  // namespace attention_detail

}  // namespace isomer
