#include <algorithm>

#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/gemm/gemm.h"
#include "isomer/kernels/loss/label_rows.h"
#include "isomer/kernels/loss/loss.h"
#include "isomer/kernels/rows.h"

namespace isomer {

namespace {

// Logits kept at a time: 16 MB of floats.
constexpr Index kLogits = Index(1) << 22;
// Rows of a block: below this the sum into dweight is bound by memory; more would gain nothing.
constexpr Index kFewRows = 256, kManyRows = 4096;

Accumulate also(Accumulate mode, bool first) { return first ? mode : Accumulate::add; }

template <class T>
MatmulOptions<T> mode_of(Accumulate mode) {
  return {.alpha = T(1), .beta = mode == Accumulate::add ? T(1) : T(0)};
}

/// The rows with a label, block by block.
template <class T>
class Blocks {
 public:
  Blocks(const ProjectedLoss<T>& in, const ProjectedLossGradients<T>& out, Context& context)
      : in_(in), out_(out), context_(context), D_(in.x.shape[1]), V_(in.weight.shape[0]) {
    Workspace& own = context.workspace();
    rows_ = own.take<Index>(in.x.shape[0]);
    for (Index n = 0; n < in.x.shape[0]; ++n)
      if (in.labels(n) >= 0) rows_[count_++] = n;
    block_ = std::min(count_, std::clamp(kLogits / std::max<Index>(1, V_), kFewRows, kManyRows));
    chunk_ = std::min(V_, kLogits / std::max<Index>(1, block_));
    x_ = own.take<T>(block_ * D_);
    dx_ = own.take<T>(out.dx.present() ? block_ * D_ : 0);
    logits_ = own.take<T>(block_ * chunk_);
    states_ = own.take<LogitRow<T>>(block_);
    scale_ = {T(out.scale / double(std::max<Index>(1, count_))), T(in.softcap)};
    bias_ = dense_matrix<T>({in.bias.data, {1, in.bias.shape[0]}, {0, in.bias.stride[0]}}, own);
  }

  LossResult run() {
    clear();
    for (begin_ = 0; begin_ < count_; begin_ += block_) {
      r_ = std::min(block_, count_ - begin_);
      gather();
      std::fill_n(states_, r_, LogitRow<T>{});
      each_chunk([&](LogitRange range) {
        project(range);
        each_row(range, [&](T* z, Index i) { read_row(context_.isa(), z, range, label(i), states_[i]); });
      });
      for (Index i = 0; i < r_; ++i) sum_.add(states_[i], label(i));
      for (Index i = 0; out_.predicted.present() && i < r_; ++i) out_.predicted(rows_[begin_ + i]) = states_[i].best;
      if (out_.dx.present() || out_.dweight.present() || out_.dbias.present()) gradients();
    }
    return sum_.result();
  }

 private:
  [[nodiscard]] Index label(Index i) const { return Index(in_.labels(rows_[begin_ + i])); }
  [[nodiscard]] View<T, 2> logits(LogitRange range) const { return contiguous(logits_, {r_, range.count}); }

  template <class F>
  void each_chunk(F f) {
    for (Index v = 0; v < V_; v += chunk_) f(LogitRange{v, std::min(chunk_, V_ - v)});
  }
  /// f(logits of the range, row of the block), side by side.
  template <class F>
  void each_row(LogitRange range, F f) {
    const Index per_task = rows_of_task(range.count);
    context_.parallel(ceil_div(r_, per_task), [&](Index task, Workspace&) {
      for (Index i = task * per_task; i < std::min(r_, (task + 1) * per_task); ++i) f(logits_ + i * range.count, i);
    });
  }

  /// What no row with a label writes to.
  void clear() {
    if (out_.dx.present() && out_.accumulate_x == Accumulate::set)
      for (Index n = 0; n < in_.x.shape[0]; ++n)
        for (Index d = 0; in_.labels(n) < 0 && d < D_; ++d) out_.dx(n, d) = 0;
    if (count_ > 0) return;
    for (Index v = 0; v < V_; ++v) {
      for (Index d = 0; out_.dweight.present() && out_.accumulate_weight == Accumulate::set && d < D_; ++d)
        out_.dweight(v, d) = 0;
      if (out_.dbias.present() && out_.accumulate_bias == Accumulate::set) out_.dbias(v) = 0;
    }
  }

  /// f(row of the block, its row of x or dx), side by side.
  template <class F>
  void each_source(F f) {
    context_.parallel(row_blocks(r_), [&](Index task, Workspace&) {
      const RowRange range = row_block(task, r_);
      for (Index i = range.begin; i < range.end; ++i) f(i, rows_[begin_ + i]);
    });
  }
  void gather() {
    const Index step = in_.x.stride[1];
    each_source([&](Index i, Index n) {
      const T* from = in_.x.at(n);
      for (Index d = 0; d < D_; ++d) x_[i * D_ + d] = from[d * step];
    });
  }
  void scatter() {
    const Index step = out_.dx.stride[1];
    const bool add = out_.accumulate_x == Accumulate::add;
    each_source([&](Index i, Index n) {
      T* to = out_.dx.at(n);
      for (Index d = 0; d < D_; ++d) to[d * step] = add ? T(to[d * step] + dx_[i * D_ + d]) : dx_[i * D_ + d];
    });
  }

  void project(LogitRange range) {
    const View<const T, 2> x = contiguous<const T>(x_, {r_, D_});
    matmul(x, transposed(slice(in_.weight, 0, range.first, range.count)), logits(range), context_);
    each_row(range, [&](T* z, Index) {
      const T* bias = bias_ == nullptr ? nullptr : bias_ + range.first;
      with_isa(context_.isa(), [&]<Isa I>() { LossKernels<T, I>::finish_logits(range.count, z, bias, scale_.cap); });
    });
  }

  void gradients() {
    const View<const T, 2> x = contiguous<const T>(x_, {r_, D_});
    each_chunk([&](LogitRange range) {
      // A single chunk is still there.
      if (chunk_ < V_) project(range);
      each_row(range, [&](T* z, Index i) { gradient_row(context_.isa(), z, range, label(i), states_[i], scale_); });
      const View<const T, 2> dz = logits(range);
      if (out_.dx.present()) {
        const Accumulate mode = range.first == 0 ? Accumulate::set : Accumulate::add;
        matmul(dz, slice(in_.weight, 0, range.first, range.count), contiguous(dx_, {r_, D_}), context_, mode_of<T>(mode));
      }
      if (out_.dweight.present())
        matmul(transposed(dz), x, slice(out_.dweight, 0, range.first, range.count), context_,
               mode_of<T>(also(out_.accumulate_weight, begin_ == 0)));
      if (out_.dbias.present())
        sum_to<T>({.x = with_leading_axes(dz)}, with_leading_axes(slice(out_.dbias, 0, range.first, range.count)),
                  also(out_.accumulate_bias, begin_ == 0), context_);
    });
    if (out_.dx.present()) scatter();
  }

  const ProjectedLoss<T>& in_;
  const ProjectedLossGradients<T>& out_;
  Context& context_;
  Index D_, V_;
  Index* rows_ = nullptr;
  Index count_ = 0, block_ = 0, chunk_ = 0;  // rows with a label; rows and logits taken at a time
  T *x_ = nullptr, *dx_ = nullptr, *logits_ = nullptr;
  const T* bias_ = nullptr;
  LogitRow<T>* states_ = nullptr;
  GradientScale<T> scale_{};
  Index begin_ = 0, r_ = 0;  // the block at hand
  LossSum sum_;
};

}  // namespace

template <class T>
LossResult projected_cross_entropy(const ProjectedLoss<T>& in, const ProjectedLossGradients<T>& out, Context& context) {
  constexpr const char* kOp = "projected_cross_entropy";
  const Index N = in.x.shape[0], D = in.x.shape[1], V = in.weight.shape[0];
  require(in.weight.shape[1] == D, kOp, "expected weight with ", D, " columns, those of x, got ", in.weight.shape[1]);
  require(in.softcap >= 0, kOp, "expected softcap >= 0, got ", in.softcap);
  check_labels(kOp, in.labels, N, V);
  if (in.bias.present()) check_shape(kOp, "bias", in.bias.shape, {V});
  if (out.dx.present()) check_shape(kOp, "dx of the shape of x,", out.dx.shape, in.x.shape);
  if (out.dweight.present()) check_shape(kOp, "dweight of the shape of weight,", out.dweight.shape, in.weight.shape);
  if (out.dbias.present()) check_shape(kOp, "dbias", out.dbias.shape, {V});
  if (out.predicted.present()) check_shape(kOp, "predicted", out.predicted.shape, {N});
  const Workspace::Scope scope(context.workspace());
  return Blocks<T>(in, out, context).run();
}

template LossResult projected_cross_entropy(const ProjectedLoss<float>&, const ProjectedLossGradients<float>&, Context&);
template LossResult projected_cross_entropy(const ProjectedLoss<double>&, const ProjectedLossGradients<double>&, Context&);

}  // namespace isomer
