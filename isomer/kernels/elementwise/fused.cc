#include "isomer/kernels/elementwise/fused.h"

#include <algorithm>

#include "isomer/kernels/check_shape.h"
#include "isomer/kernels/elementwise/arithmetic_kernels.h"
#include "isomer/kernels/elementwise/gated_kernels.h"
#include "isomer/kernels/elementwise/pass.h"
#include "isomer/kernels/elementwise/sum.h"
#include "isomer/kernels/elementwise/unary_kernels.h"

namespace isomer {

bool fits(int inputs, int steps, int outputs) { return inputs + steps <= kFusedValues && 2 * inputs + outputs <= kOperands; }

namespace {

template <class T>
using Values = std::array<Cells<const T>, kFusedValues>;
using Flags = std::array<bool, kFusedValues>;

template <class T>
Cells<T> tile(Extent extent, Workspace& scratch) {
  return {scratch.take<T>(extent.rows * extent.columns), extent.columns, 1};
}

template <class T>
Cells<const T> to_read(Cells<T> cells) {
  return {cells.data, cells.row, cells.column};
}

/// One long row where all cells lie behind each other: short ones cost their beginnings.
template <class... C>
Extent coalesced(Extent extent, const C&... cells) {
  const bool dense = ((cells.data == nullptr || (cells.column == 1 && cells.row == extent.columns)) && ...);
  return dense ? Extent{1, extent.rows * extent.columns} : extent;
}

template <class T, Isa I>
void run(const FusedStep& step, Extent extent, const Values<T>& values, Cells<T> y) {
  const Cells<const T> a = values[std::size_t(step.a)];
  if (step.map()) return UnaryKernels<T, I>::forward({step.f, step.options, Accumulate::set}, coalesced(extent, a, y), a, y);
  const Cells<const T> b = values[std::size_t(step.b)];
  if (step.gate()) return GatedKernels<T, I>::forward(step.f, coalesced(extent, a, b, y), a, b, y);
  ArithmeticKernels<T, I>::binary(step.combine, coalesced(extent, a, b, y), a, b, y);
}

template <class T, Isa I>
void put(const Product<T>& product, Extent extent, Cells<T> to, Accumulate mode) {
  ArithmeticKernels<T, I>::product(product, coalesced(extent, product.x, product.weight, to), to, mode);
}

void check_plan(const char* op, const Fused& plan, std::size_t inputs, std::size_t outputs) {
  require(Index(inputs) == plan.inputs && outputs == plan.outputs.size(), op, "expected ", plan.inputs, " inputs and ",
          plan.outputs.size(), " outputs, got ", inputs, " and ", outputs);
  require(fits(plan.inputs, int(plan.steps.size()), int(plan.outputs.size())), op, "expected fewer steps, got ",
          plan.steps.size(), " on ", inputs, " inputs");
}

template <class T>
class Backward {
 public:
  Backward(const Fused& plan, std::span<const View<const T, 4>> inputs, std::span<const View<const T, 4>> dy,
           std::span<const FusedTarget<T>> targets, Context& context)
      : plan_(plan), inputs_(inputs), dy_(dy), targets_(targets), context_(context), pass_(pass_of(inputs, dy, targets)) {
    pass_.enlarge();
    find_wanted();
    find_needed();
    for (int i = 0; i < plan.inputs; ++i) {
      const Strides& s = pass_.stride(target_operand(i));
      const auto whole = [&](std::size_t axis) { return s[axis] != 0 || pass_.shape()[axis] == 1; };
      const bool rows = whole(0) && whole(1) && whole(2);
      summed_[at(i)] = !rows || !whole(3);
      // A row that is in one patch needs no further sum.
      in_parts_[at(i)] = reached(i) && summed_[at(i)] && !(rows && pass_.cuts()[1] == 1);
      if (in_parts_[at(i)]) parts_[at(i)] = context.workspace().take<double>(pass_.patches() * part_size(i));
    }
  }

  void run() {
    for_patches(pass_, context_, [&](const Patch& patch, Workspace& scratch) {
      with_isa(context_.isa(), [&]<Isa I>() { this->template go_back<I>(patch, scratch); });
    });
    context_.parallel(plan_.inputs, [&](Index i, Workspace& scratch) {
      if (in_parts_[at(int(i))]) finish(int(i), scratch);
    });
    for (int i = 0; i < plan_.inputs; ++i)
      if (const auto& [view, mode] = targets_[at(i)]; view.present() && !reached(i) && mode == Accumulate::set) clear(view);
  }

 private:
  /// A gradient so far: cells that are somebody else's until something is added to them.
  struct Gradient {
    Cells<const T> sum = {};
    Cells<T> own = {};
  };
  using Gradients = std::array<Gradient, kFusedValues>;

  static std::size_t at(int i) { return std::size_t(i); }
  [[nodiscard]] int dy_operand(std::size_t output) const { return plan_.inputs + int(output); }
  [[nodiscard]] int target_operand(int input) const { return plan_.inputs + int(dy_.size()) + input; }
  [[nodiscard]] bool reached(int value) const { return wanted_[at(value)] && arrives_[at(value)]; }

  static Pass pass_of(std::span<const View<const T, 4>> inputs, std::span<const View<const T, 4>> dy,
                      std::span<const FusedTarget<T>> targets) {
    const auto shape = std::find_if(dy.begin(), dy.end(), [](const auto& view) { return view.present(); })->shape;
    std::array<Strides, kOperands> strides{};
    std::size_t n = 0;
    for (const auto& input : inputs) strides[n++] = strides_in(input, shape);
    for (const auto& view : dy) strides[n++] = view.present() ? view.stride : Strides{};
    for (const auto& target : targets) strides[n++] = target.view.present() ? strides_in(target.view, shape) : Strides{};
    return Pass(shape, std::span<const Strides>(strides).first(n));
  }

  /// Which values lead to a target, and which to an output with a gradient.
  void find_wanted() {
    for (int i = 0; i < plan_.inputs; ++i) wanted_[at(i)] = targets_[at(i)].view.present();
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const FusedStep& step = plan_.steps[s];
      wanted_[at(plan_.inputs) + s] = wanted_[at(step.a)] || (!step.map() && wanted_[at(step.b)]);
    }
    for (std::size_t o = 0; o < dy_.size(); ++o) arrives_[at(plan_.outputs[o])] = dy_[o].present();
    for (std::size_t s = plan_.steps.size(); s-- > 0;) {
      if (!arrives_[at(plan_.inputs) + s]) continue;
      arrives_[at(plan_.steps[s].a)] = true;
      if (!plan_.steps[s].map()) arrives_[at(plan_.steps[s].b)] = true;
    }
  }
  static bool has_slope(const FusedStep& step) { return info_of(step.f).bends; }
  /// Which steps are computed again.
  void find_needed() {
    for (std::size_t s = plan_.steps.size(); s-- > 0;) {
      const FusedStep& step = plan_.steps[s];
      const bool again = needed_[at(plan_.inputs) + s], back = reached(plan_.inputs + int(s));
      if (step.map()) {
        needed_[at(step.a)] = needed_[at(step.a)] || again || (back && has_slope(step));
        continue;
      }
      const bool product = back && step.combine == Binary::multiply, gate = back && step.gate();
      needed_[at(step.a)] = needed_[at(step.a)] || again || gate || (product && wanted_[at(step.b)]);
      needed_[at(step.b)] = needed_[at(step.b)] || again || gate || (product && wanted_[at(step.a)]);
    }
  }

  template <Isa I>
  void go_back(const Patch& patch, Workspace& scratch) {
    Values<T> values, slopes{};
    for (int i = 0; i < plan_.inputs; ++i)
      if (needed_[at(i)]) values[at(i)] = read_cells(pass_, patch, i, inputs_[at(i)].data, scratch);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      if (!needed_[at(plan_.inputs) + s]) continue;
      const FusedStep& step = plan_.steps[s];
      const Cells<T> y = tile<T>(patch.extent, scratch);
      if (step.map() && has_slope(step) && reached(plan_.inputs + int(s))) {
        const Cells<T> slope = tile<T>(patch.extent, scratch);
        const Cells<const T> x = values[at(step.a)];
        UnaryKernels<T, I>::with_slope({step.f, step.options, Accumulate::set}, coalesced(patch.extent, x, y, slope), x, y,
                                       slope);
        slopes[at(plan_.inputs) + s] = to_read(slope);
      } else {
        isomer::run<T, I>(step, patch.extent, values, y);
      }
      values[at(plan_.inputs) + s] = to_read(y);
    }
    Gradients gradients{};
    for (std::size_t o = 0; o < dy_.size(); ++o)
      gradients[at(plan_.outputs[o])].sum = read_cells(pass_, patch, dy_operand(o), dy_[o].data, scratch);
    for (std::size_t s = plan_.steps.size(); s-- > 0;)
      if (reached(plan_.inputs + int(s))) step_back<I>(s, patch, values, slopes, gradients, scratch);
    for (int i = 0; i < plan_.inputs; ++i) {
      if (!reached(i)) continue;
      if (in_parts_[at(i)])
        sum_part<I>(i, patch, gradients[at(i)].sum, scratch);
      else if (summed_[at(i)])
        sum_whole_rows<I>(i, patch, gradients[at(i)].sum, scratch);
      else
        store_cells(pass_, patch, target_operand(i), gradients[at(i)].own, targets_[at(i)].view.data);
    }
  }

  template <Isa I>
  void step_back(std::size_t s, const Patch& patch, const Values<T>& values, const Values<T>& slopes, Gradients& gradients,
                 Workspace& scratch) {
    const FusedStep& step = plan_.steps[s];
    const Cells<const T> up = gradients[at(plan_.inputs) + s].sum;
    if (step.map()) {
      const Cells<const T> x = has_slope(step) ? values[at(step.a)] : up, slope = slopes[at(plan_.inputs) + s];
      const auto [to, mode] = into<I>(step.a, patch, gradients, scratch);
      if (slope.data != nullptr) return put<T, I>({up, slope, T(1)}, patch.extent, to, mode);
      return UnaryKernels<T, I>::backward({step.f, step.options, mode}, coalesced(patch.extent, x, up, to), x, up, to);
    }
    if (step.gate()) {
      const GatedCells<T> in{values[at(step.a)], values[at(step.b)], up};
      const Into a = into<I>(step.a, patch, gradients, scratch), b = into<I>(step.b, patch, gradients, scratch);
      return GatedKernels<T, I>::backward(step.f, coalesced(patch.extent, in.g, in.x, up, a.cells, b.cells), in,
                                          {a.cells, b.cells, a.mode, b.mode});
    }
    const auto operand = [&](int v, Product<T> product) {
      // What is only handed on needs no memory of its own, but in the caller's.
      const bool as_it_is = product.weight.data == nullptr && product.scale == 1 && !in_place(v);
      if (!wanted_[at(v)]) return;
      if (as_it_is && gradients[at(v)].sum.data == nullptr) {
        gradients[at(v)].sum = up;
        return;
      }
      const auto [to, mode] = into<I>(v, patch, gradients, scratch);
      put<T, I>(product, patch.extent, to, mode);
    };
    const bool product = step.combine == Binary::multiply;
    operand(step.a, {up, product ? values[at(step.b)] : Cells<const T>{}, T(1)});
    operand(step.b, {up, product ? values[at(step.a)] : Cells<const T>{}, step.combine == Binary::subtract ? T(-1) : T(1)});
  }

  /// Is the gradient of the value put together where the caller wants it?
  [[nodiscard]] bool in_place(int v) const { return v < plan_.inputs && !summed_[at(v)]; }

  /// Where something is put to the gradient of a value; no cells if nobody wants it.
  struct Into {
    Cells<T> cells = {};
    Accumulate mode = Accumulate::set;
  };
  template <Isa I>
  Into into(int v, const Patch& patch, Gradients& gradients, Workspace& scratch) {
    if (!wanted_[at(v)]) return {};
    auto& [sum, own] = gradients[at(v)];
    if (own.data != nullptr) return {own, Accumulate::add};
    Accumulate mode = Accumulate::set;
    if (in_place(v)) {
      const FusedTarget<T>& target = targets_[at(v)];
      mode = target.mode;
      own = write_cells(pass_, patch, target_operand(v), target.view.data, mode, scratch);
    } else {
      own = tile<T>(patch.extent, scratch);
      if (sum.data != nullptr) {
        put<T, I>({sum, {}, T(1)}, patch.extent, own, mode);
        mode = Accumulate::add;
      }
    }
    sum = to_read(own);
    return {own, mode};
  }

  template <Isa I>
  void sum_whole_rows(int i, const Patch& patch, Cells<const T> gradient, Workspace& scratch) {
    const auto& [view, mode] = targets_[at(i)];
    double* sums = scratch.take<double>(patch.extent.rows);
    ArithmeticKernels<T, I>::sum_columns({gradient, {}, T(1)}, patch.extent, sums);
    T* to = view.data + patch.offset[at(target_operand(i))];
    for (Index r = 0; r < patch.extent.rows; ++r, to += pass_.stride(target_operand(i))[2])
      *to = T(sums[r]) + (mode == Accumulate::add ? *to : T(0));
  }

  // Other repeated inputs: every patch has a sum of its own.
  [[nodiscard]] bool has_axis(int i, std::size_t axis) const { return pass_.stride(target_operand(i))[axis] != 0; }
  [[nodiscard]] Extent part_extent(int i, Extent extent) const {
    return {has_axis(i, 2) ? extent.rows : 1, has_axis(i, 3) ? extent.columns : 1};
  }
  [[nodiscard]] Index part_size(int i) const {
    const auto [rows, columns] = part_extent(i, pass_.size());
    return rows * columns;
  }
  template <Isa I>
  void sum_part(int i, const Patch& patch, Cells<const T> gradient, Workspace& scratch) {
    const auto [rows, columns] = patch.extent;
    const Product<T> all{gradient, {}, T(1)};
    double* part = parts_[at(i)] + patch.index * part_size(i);
    if (has_axis(i, 2) && has_axis(i, 3)) {
      for (Index r = 0; r < rows; ++r)
        for (Index c = 0; c < columns; ++c) part[r * columns + c] = double(gradient.data[r * gradient.row + c * gradient.column]);
    } else if (has_axis(i, 3)) {
      ArithmeticKernels<T, I>::sum_rows(all, patch.extent, scratch.take<T>(columns), part);
    } else if (has_axis(i, 2)) {
      ArithmeticKernels<T, I>::sum_columns(all, patch.extent, part);
    } else {
      double* sums = scratch.take<double>(rows);
      ArithmeticKernels<T, I>::sum_columns(all, patch.extent, sums);
      *part = 0;
      for (Index r = 0; r < rows; ++r) *part += sums[r];
    }
  }
  void finish(int i, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    const auto& [view, mode] = targets_[at(i)];
    if (view.size() == 0) return;
    const int operand = target_operand(i);
    Index last = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) last += (view.shape[axis] - 1) * view.stride[axis];
    double* sums = scratch.take<double>(last + 1);
    std::fill_n(sums, last + 1, 0.0);
    for (Index p = 0; p < pass_.patches(); ++p) {
      const Patch patch = pass_.patch(p);
      const auto [rows, columns] = part_extent(i, patch.extent);
      const double* part = parts_[at(i)] + p * part_size(i);
      double* to = sums + patch.offset[at(operand)];
      for (Index r = 0; r < rows; ++r)
        for (Index c = 0; c < columns; ++c)
          to[r * pass_.stride(operand)[2] + c * pass_.stride(operand)[3]] += part[r * columns + c];
    }
    for (Index b = 0; b < view.shape[0]; ++b)
      for (Index t = 0; t < view.shape[1]; ++t)
        for (Index h = 0; h < view.shape[2]; ++h)
          for (Index d = 0; d < view.shape[3]; ++d) {
            T& to = view(b, t, h, d);
            const T sum = T(sums[&to - view.data]);
            to = mode == Accumulate::add ? to + sum : sum;
          }
  }
  void clear(View<T, 4> view) {
    const T zero = 0;
    copy<T>({&zero, view.shape, {}}, view, context_);
  }

  const Fused& plan_;
  std::span<const View<const T, 4>> inputs_, dy_;
  std::span<const FusedTarget<T>> targets_;
  Context& context_;
  Pass pass_;
  // Of values: does a target depend on it, does a gradient come to it, is it computed again?
  Flags wanted_{}, arrives_{}, needed_{};
  Flags summed_{}, in_parts_{};  // of inputs: is the gradient a sum, and one over patches?
  std::array<double*, kFusedValues> parts_{};
};

}  // namespace

template <class T>
void fused(const Fused& plan, std::span<const View<const T, 4>> inputs, std::span<const View<T, 4>> outputs, Context& context) {
  check_plan("fused", plan, inputs.size(), outputs.size());
  std::array<int, kFusedValues> output_of;
  output_of.fill(-1);
  std::array<Strides, kOperands> strides{};
  for (std::size_t i = 0; i < inputs.size(); ++i) strides[i] = strides_in(inputs[i], outputs[0].shape);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    check_shape("fused", "outputs of one shape,", outputs[o].shape, outputs[0].shape);
    strides[inputs.size() + o] = outputs[o].stride;
    output_of[std::size_t(plan.outputs[o])] = int(o);
  }
  Pass pass(outputs[0].shape, std::span<const Strides>(strides).first(inputs.size() + outputs.size()));
  if (pass.empty()) return;
  pass.enlarge();
  for_patches(pass, context, [&](const Patch& patch, Workspace& scratch) {
    Values<T> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) values[i] = read_cells(pass, patch, int(i), inputs[i].data, scratch);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const std::size_t value = inputs.size() + s;
      const int o = output_of[value], operand = int(inputs.size()) + o;
      T* data = o < 0 ? nullptr : outputs[std::size_t(o)].data;
      const Cells<T> y =
          o < 0 ? tile<T>(patch.extent, scratch) : write_cells(pass, patch, operand, data, Accumulate::set, scratch);
      with_isa(context.isa(), [&]<Isa I>() { run<T, I>(plan.steps[s], patch.extent, values, y); });
      values[value] = to_read(y);
      if (o >= 0) store_cells(pass, patch, operand, y, data);
    }
  });
}

template <class T>
void fused_vjp(const Fused& plan, std::span<const View<const T, 4>> inputs, std::span<const View<const T, 4>> dy,
               std::span<const FusedTarget<T>> targets, Context& context) {
  check_plan("fused_vjp", plan, inputs.size(), dy.size());
  require(targets.size() == inputs.size(), "fused_vjp", "expected a target for each of ", inputs.size(), " inputs, got ",
          targets.size());
  require(std::any_of(dy.begin(), dy.end(), [](const auto& view) { return view.present(); }), "fused_vjp",
          "expected the gradient of at least one output, got none");
  const Workspace::Scope scope(context.workspace());
  Backward<T>(plan, inputs, dy, targets, context).run();
}

template void fused(const Fused&, std::span<const View<const float, 4>>, std::span<const View<float, 4>>, Context&);
template void fused(const Fused&, std::span<const View<const double, 4>>, std::span<const View<double, 4>>, Context&);
template void fused_vjp(const Fused&, std::span<const View<const float, 4>>, std::span<const View<const float, 4>>,
                        std::span<const FusedTarget<float>>, Context&);
template void fused_vjp(const Fused&, std::span<const View<const double, 4>>, std::span<const View<const double, 4>>,
                        std::span<const FusedTarget<double>>, Context&);

}  // namespace isomer
