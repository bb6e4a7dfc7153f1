#pragma once
// For the property suite: a call may be cut anywhere, into single tokens too, if the state is carried; gradients flow back
// through it.
#include <cmath>

#include "isomer/laws/properties_slices.h"
#include "isomer/laws/properties_trial.h"

namespace isomer::properties {

/// A call in parts, and their results put together. `points` cut it: 0 = first ≤ … ≤ last = T.
class Parts {
 public:
  Parts(const Trial& trial, const Tensors& inputs, const Tensors& whole, const std::vector<Index>& points)
      : trial_(trial), inputs_(inputs), whole_(whole), points_(points) {
    for (const auto& [name, x] : whole) assembled_.emplace(name, zeros(x.shape()));
  }

  /// States go from part to part. What each part is called with is kept for the way back.
  void forwards() {
    Tensors carried;
    for (const auto& [name, x] : inputs_)
      if (name.starts_with("initial_")) carried.emplace(name, x.clone());
    for (std::size_t i = 0; i + 1 < points_.size(); ++i) {
      Tensors part = cut(trial_.law, inputs_, points_[i], points_[i + 1]);
      part.merge(carried);
      Tensors call = clone(part);
      std::erase_if(call, [](const auto& item) { return item.first.starts_with("grad_"); });
      for (auto& [name, x] : trial_.run(call)) {
        const std::string initial = name.starts_with("final_") ? "initial_" + name.substr(6) : "";
        if (initial.empty() || i + 2 == points_.size())
          join(name, x, i);
        else if (spec_of(trial_.law, initial) != nullptr)
          carried.insert_or_assign(initial, x.clone());
      }
      parts_.push_back(std::move(part));
    }
  }

  /// The gradient of a part's initial state is that of the final state before it.
  void backwards() {
    Tensors carried;
    for (const auto& [name, x] : inputs_)
      if (name.starts_with("grad_final_")) {
        carried.emplace(name, x.clone());
        if (scaled()) rescale(carried.at(name), assembled_.at("final_max"), whole_.at("final_max"));
      }
    for (std::size_t i = parts_.size(); i-- > 0;) {
      parts_[i].merge(carried);
      carried.clear();
      for (auto& [name, x] : trial_.run(parts_[i])) {
        if (!name.starts_with("grad_")) continue;
        if (name.starts_with("grad_initial_") && i > 0)
          carried.emplace("grad_final_" + name.substr(13), x.clone());
        else
          join(name, x, i);
      }
    }
  }

  /// Results in the scale of the whole call.
  [[nodiscard]] const Tensors& assembled() {
    if (!scaled()) return assembled_;
    Tensor& reached = assembled_.at("final_max");
    for (const auto& [name, x] : assembled_)
      if (name.starts_with("final_") && name != "final_max") rescale(x, reached, whole_.at("final_max"));
    reached = whole_.at("final_max").cast(Type::f64);
    return assembled_;
  }

 private:
  /// With final_max the true state is S·e^max: a part without tokens may leave another scale than the whole call, and the same
  /// state.
  [[nodiscard]] bool scaled() const { return whole_.contains("final_max"); }

  static void rescale(const Tensor& x, const Tensor& from, const Tensor& to) {
    for (Index i = 0; i < x.size(); ++i) {
      const Index m = i / (x.size() / from.size());
      if (number_at(from, m) != number_at(to, m))
        set_number(x, i, number_at(x, i) * std::exp(number_at(from, m) - number_at(to, m)));
    }
  }

  void join(const std::string& name, const Tensor& x, std::size_t part) {
    const Tensor& whole = assembled_.at(name);
    const Layout layout = layout_of(trial_.law, name, whole);
    const Index key = keys_of(trial_.law, inputs_, points_[part], points_[part + 1]).begin;
    add_slice(whole, layout, x, layout.axis == 'T' ? points_[part] : layout.axis == 'S' ? key : 0);
  }

  const Trial& trial_;
  const Tensors &inputs_, &whole_;
  const std::vector<Index>& points_;
  std::vector<Tensors> parts_;
  Tensors assembled_;
};

[[nodiscard]] inline std::string splits(const Trial& trial, const std::vector<Index>& points) {
  const Tensors inputs = trial.inputs(), whole = trial.run(inputs);
  Parts parts(trial, inputs, whole, points);
  parts.forwards();
  parts.backwards();
  Report report(trial, "splits into " + std::to_string(points.size() - 1));
  // Both sides have the error of their form, and a carried state adds its own.
  report.compare(parts.assembled(), whole, 4);
  return report.text();
}

}  // namespace isomer::properties
