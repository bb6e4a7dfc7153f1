// Streaming: the cache of keys and values, and several tokens at a time against it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "isomer/laws/attention/attention_problem.h"

namespace isomer {

template <class T>
AttentionState<T>::AttentionState(const Shape& shape, const AttentionOptions& options)
    : shape_(shape), window_(options.window), sinks_(options.sinks) {
  require(options.direction == AttentionOptions::Direction::causal, "attention", "expected a causal direction for a state");
  if (window_ > 0) reserve(sinks_ + window_);
}

template <class T>
Index AttentionState<T>::kept() const {
  return window_ > 0 ? std::min(length_, sinks_ + window_) : length_;
}

template <class T>
Index AttentionState<T>::bytes() const {
  return kept() * shape_.B *
         ((shape_.Gk * shape_.K + shape_.Gv * shape_.V) * Index(sizeof(T)) +
          (written_.empty() ? 0 : shape_.H * Index(sizeof(double))));
}

template <class T>
void AttentionState<T>::reserve(Index slots) {
  const auto grow = [&](auto& x, Index lanes, Index width) {
    std::remove_reference_t<decltype(x)> larger(std::size_t(lanes * slots * width));
    for (Index i = 0; i < lanes && capacity_ > 0; ++i)
      std::copy_n(x.begin() + i * capacity_ * width, capacity_ * width, larger.begin() + i * slots * width);
    x.swap(larger);
  };
  grow(keys_, shape_.B * shape_.Gk, shape_.K);
  grow(values_, shape_.B * shape_.Gv, shape_.V);
  if (!forgotten_.empty()) grow(written_, shape_.B * shape_.H, 1);
  capacity_ = slots;
}

template <class T>
void AttentionState<T>::append(View<const T, 4> k, View<const T, 4> v, View<const T, 3> log_forget) {
  // A ring behind the sinks; without a window the cache doubles when it is full.
  const Index slot = window_ == 0 || length_ < sinks_ ? length_ : sinks_ + (length_ - sinks_) % window_;
  if (slot >= capacity_) reserve(std::max<Index>(2 * capacity_, 64));
  if (log_forget.present() && forgotten_.empty()) {
    forgotten_.assign(std::size_t(shape_.B * shape_.H), 0.0);
    written_.assign(std::size_t(shape_.B * shape_.H * capacity_), 0.0);
  }
  for (Index b = 0; b < shape_.B; ++b) {
    for (Index g = 0; g < shape_.Gk; ++g)
      for (Index d = 0; d < shape_.K; ++d)
        keys_[std::size_t(((b * shape_.Gk + g) * capacity_ + slot) * shape_.K + d)] = k(b, 0, g, d);
    for (Index g = 0; g < shape_.Gv; ++g)
      for (Index d = 0; d < shape_.V; ++d)
        values_[std::size_t(((b * shape_.Gv + g) * capacity_ + slot) * shape_.V + d)] = v(b, 0, g, d);
    for (Index h = 0; h < shape_.H && !forgotten_.empty(); ++h) {
      double& sum = forgotten_[std::size_t(b * shape_.H + h)];
      double* written = written_.data() + (b * shape_.H + h) * capacity_;
      const double f = log_forget.present() ? double(log_forget(b, 0, h)) : 0.0;
      if (f == -std::numeric_limits<double>::infinity())
        std::fill(written, written + capacity_, std::numeric_limits<double>::infinity());
      else
        sum += f;
      written[slot] = sum;
    }
  }
  ++length_;
}

template <class T>
Index AttentionState<T>::behind(Index slot) const {
  if (window_ == 0 || slot < sinks_) return length_ - 1 - slot;
  const Index newest = (length_ - 1 - sinks_) % window_;
  return (newest - (slot - sinks_) + window_) % window_;
}

template <class T>
void AttentionState<T>::decays(Index b, Index h, Index begin, std::span<T> logs) const {
  const double now = forgotten_[std::size_t(b * shape_.H + h)];
  const double* written = written_.data() + (b * shape_.H + h) * capacity_ + begin;
  for (std::size_t j = 0; j < logs.size(); ++j) logs[j] = T((now - written[j]) * std::numbers::log2e);
}

template <class T>
Index AttentionState<T>::seen() const {
  // At least one behind the sinks: it knows what has been forgotten since.
  return window_ > 0 ? std::min(length_, sinks_ + std::max<Index>(window_ - 1, 1)) : length_;
}

template <class T>
void AttentionState<T>::gather(View<T, 4> k, View<T, 4> v, View<T, 3> log_forget) const {
  constexpr double kForgotten = std::numeric_limits<double>::infinity();
  const Index count = seen(), sinks = std::min(sinks_, count);
  // The slot of the j-th of them: behind the sinks come the last of the ring.
  const auto slot = [&](Index j) { return window_ == 0 || j < sinks ? j : sinks_ + (length_ - count + j - sinks_) % window_; };
  for (Index b = 0; b < shape_.B; ++b) {
    for (Index j = 0; j < count; ++j) {
      for (Index g = 0; g < shape_.Gk; ++g) std::copy_n(keys(b, g) + slot(j) * shape_.K, shape_.K, k.at(b, j, g));
      for (Index g = 0; g < shape_.Gv; ++g) std::copy_n(values(b, g) + slot(j) * shape_.V, shape_.V, v.at(b, j, g));
    }
    for (Index h = 0; h < shape_.H && log_forget.present(); ++h) {
      const double* written = forgets() ? written_.data() + (b * shape_.H + h) * capacity_ : nullptr;
      // What was dropped in between is in the difference; the first key behind forgotten ones forgets them.
      for (Index j = 0; j < count; ++j) {
        const double now = written ? written[slot(j)] : 0, before = written && j > 0 ? written[slot(j - 1)] : now;
        log_forget(b, j, h) = T(now == before ? 0.0 : before == kForgotten ? -kForgotten : now - before);
      }
    }
  }
}

template <class T>
void AttentionState<T>::add_to(Tensors& tensors, const std::string& prefix) const {
  const Index used = kept();
  const auto add = [&](const char* name, const auto& from, Index heads, std::vector<Index> shape) {
    using Number = typename std::remove_cvref_t<decltype(from)>::value_type;
    Tensor tensor(type_of<Number>, std::move(shape));
    const Index lanes = shape_.B * heads, width = used == 0 ? 0 : tensor.size() / (lanes * used);
    for (Index i = 0; i < lanes && used > 0; ++i)
      std::copy_n(from.data() + i * capacity_ * width, used * width, tensor.data<Number>() + i * used * width);
    tensors.insert_or_assign(prefix + name, std::move(tensor));
  };
  add("keys", keys_, shape_.Gk, {shape_.B, shape_.Gk, used, shape_.K});
  add("values", values_, shape_.Gv, {shape_.B, shape_.Gv, used, shape_.V});
  Tensor length(Type::i64, {1});
  length.data<std::int64_t>()[0] = length_;
  tensors.insert_or_assign(prefix + "length", std::move(length));
  if (!forgets()) return;
  add("written", written_, shape_.H, {shape_.B, shape_.H, used});
  Tensor sums(Type::f64, {shape_.B, shape_.H});
  std::ranges::copy(forgotten_, sums.data<double>());
  tensors.insert_or_assign(prefix + "forgotten", std::move(sums));
}

template <class T>
void AttentionState<T>::assign(const Tensors& tensors, const std::string& prefix) {
  const std::int64_t length = expect_tensor(tensors, prefix + "length", Type::i64, {1}).data<std::int64_t>()[0];
  // More than any stream sees; what a file says is added to.
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  require(length >= 0 && length <= kMost, "attention", "expected a length from 0 to ", kMost, ", got ", length);
  AttentionState next(shape_, {.window = window_, .sinks = sinks_});
  next.length_ = length;
  const Index used = next.kept();
  const bool forgets = tensors.contains(prefix + "written") || tensors.contains(prefix + "forgotten");
  const Tensor& k = expect_tensor(tensors, prefix + "keys", type_of<T>, {shape_.B, shape_.Gk, used, shape_.K});
  const Tensor& v = expect_tensor(tensors, prefix + "values", type_of<T>, {shape_.B, shape_.Gv, used, shape_.V});
  if (forgets) {
    const Tensor& sums = expect_tensor(tensors, prefix + "forgotten", Type::f64, {shape_.B, shape_.H});
    next.forgotten_.assign(sums.data<double>(), sums.data<double>() + sums.size());
  }
  const Tensor* written = forgets ? &expect_tensor(tensors, prefix + "written", Type::f64, {shape_.B, shape_.H, used}) : nullptr;
  next.capacity_ = 0;
  next.reserve(std::max(used, window_ > 0 ? sinks_ + window_ : Index(64)));
  const auto fill = [&](auto& to, const auto* from, Index lanes, Index width) {
    for (Index i = 0; i < lanes; ++i) std::copy_n(from + i * used * width, used * width, to.data() + i * next.capacity_ * width);
  };
  fill(next.keys_, k.template data<T>(), shape_.B * shape_.Gk, shape_.K);
  fill(next.values_, v.template data<T>(), shape_.B * shape_.Gv, shape_.V);
  if (written != nullptr) fill(next.written_, written->data<double>(), shape_.B * shape_.H, Index(1));
  *this = std::move(next);
}

template class AttentionState<float>;
template class AttentionState<double>;

namespace {
/// Copies what is new behind the `first` that are there.
template <class T, int R>
void append_rows(View<const T, R> from, Index first, View<T, R> to) {
  each_element(from.shape, [&](std::array<Index, std::size_t(R)> i) {
    const T x = *element(from, i);
    i[1] += first;
    *element(to, i) = x;
  });
}
}  // namespace

template <class T>
void attention_stream(const AttentionInputs<T>& in, const AttentionOptions& options, AttentionState<T>& state,
                      const AttentionOutputs<T>& out, Context& context) {
  const Index tokens = in.q.shape[1], earlier = state.seen();
  if (tokens == 1) return attention_step(in, options, state, out, context);
  const auto& shape = state.shape();
  const auto token = [](auto view, Index t) { return view.present() ? slice(view, 1, t, 1) : view; };
  const Workspace::Scope scope(context.workspace());
  Workspace& scratch = context.workspace();
  AttentionInputs<T> all = in;
  if (earlier > 0) {
    const Index S = earlier + tokens;
    const View<T, 4> k = contiguous(scratch.take<T>(shape.B * S * shape.Gk * shape.K), {shape.B, S, shape.Gk, shape.K});
    const View<T, 4> v = contiguous(scratch.take<T>(shape.B * S * shape.Gv * shape.V), {shape.B, S, shape.Gv, shape.V});
    View<T, 3> forget;
    if (in.log_forget.present() || state.forgets())
      forget = contiguous(scratch.take<T>(shape.B * S * shape.H), {shape.B, S, shape.H});
    state.gather(k, v, forget);
    append_rows(in.k, earlier, k);
    append_rows(in.v, earlier, v);
    if (in.log_forget.present())
      append_rows(in.log_forget, earlier, forget);
    else if (forget.present())
      each_element(std::array<Index, 3>{shape.B, tokens, shape.H},
                   [&](const auto& i) { forget(i[0], earlier + i[1], i[2]) = T(0); });
    all.k = k;
    all.v = v;
    all.log_forget = forget;
  }
  attention(all, options, Form::automatic, {.o = out.o, .log_sum = out.log_sum}, context);
  for (Index t = 0; t < tokens; ++t) state.append(token(in.k, t), token(in.v, t), token(in.log_forget, t));
}

template void attention_stream(const AttentionInputs<float>&, const AttentionOptions&, AttentionState<float>&,
                               const AttentionOutputs<float>&, Context&);
template void attention_stream(const AttentionInputs<double>&, const AttentionOptions&, AttentionState<double>&,
                               const AttentionOutputs<double>&, Context&);

}  // namespace isomer
