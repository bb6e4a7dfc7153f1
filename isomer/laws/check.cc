#include "isomer/laws/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "isomer/laws/bound_law.h"
#include "isomer/laws/random.h"

namespace isomer {

namespace {
constexpr double kInfinite = std::numeric_limits<double>::infinity();

double number_at(const Tensor& x, Index i) { return x.type() == Type::f32 ? double(x.data<float>()[i]) : x.data<double>()[i]; }

double largest(const Tensor& x) {
  double top = 0;
  for (Index i = 0; i < x.size(); ++i)
    if (const double value = std::abs(number_at(x, i)); std::isfinite(value)) top = std::max(top, value);
  return top;
}

bool is_gradient(std::string_view quantity) { return quantity.starts_with("grad_"); }

/// The worst row of every form, type and quantity, in the order of the law's forms.
class Table {
 public:
  explicit Table(const Law& law) : law_(law) {}

  void add(Form form, Type type, const std::string& quantity, double error, const std::string& label) {
    CheckRow& row = rows_[{type, form, is_gradient(quantity), quantity}];
    if (row.subject.empty()) {
      row = {.subject = std::string(law_.name()),
             .form = std::string(name_of(form)),
             .type = type == Type::f32 ? "f32" : "f64",
             .quantity = quantity,
             .limit = law_.tolerance(quantity) * epsilon_of(type),
             .worst = label};
    }
    if (error > row.error || std::isnan(error)) {
      row.error = error;
      row.worst = label;
    }
    row.pass = row.error <= row.limit;
  }

  [[nodiscard]] std::vector<CheckRow> rows() const {
    std::vector<CheckRow> all;
    for (const auto& [key, row] : rows_) all.push_back(row);
    return all;
  }

 private:
  const Law& law_;
  std::map<std::tuple<Type, Form, bool, std::string>, CheckRow> rows_;
};

void compare(const Tensors& got, const Tensors& want, Form form, Type type, const std::string& label, Table& table) {
  for (const auto& [name, tensor] : want) {
    const auto found = got.find(name);
    table.add(form, type, name, found == got.end() ? kInfinite : relative_error(found->second, tensor, scale_of(name, want)),
              label);
  }
  for (const auto& [name, tensor] : got)
    if (!want.contains(name)) table.add(form, type, name, kInfinite, label);
}
}  // namespace

double relative_error(const Tensor& got, const Tensor& want, double scale) {
  if (got.shape() != want.shape()) return kInfinite;
  double worst = 0;
  for (Index i = 0; i < want.size(); ++i) {
    const double x = number_at(got, i), y = number_at(want, i);
    if (x == y) continue;
    const double error = std::abs(x - y) / scale;
    if (!(error <= worst)) worst = std::isnan(error) ? kInfinite : error;
  }
  return worst;
}

double relative_error(const Tensor& got, const Tensor& want) {
  const double top = largest(want);
  return relative_error(got, want, top > 0 ? top : 1);
}

double scale_of(const std::string& quantity, const Tensors& all) {
  // A gradient this much smaller than the largest one is what cancellation left of terms as large.
  constexpr double kCancelled = 1.0 / 16;
  double scale = largest(all.at(quantity));
  if (is_gradient(quantity))
    for (const auto& [name, tensor] : all)
      if (is_gradient(name)) scale = std::max(scale, kCancelled * largest(tensor));
  return scale > 0 ? scale : 1;
}

std::vector<CheckRow> check(const Law& law, Context& context, const CheckPlan& plan) {
  Table table(law);
  int done = 0;
  const int total = int(law.cases().size());
  for (const Case& what : law.cases()) {
    const std::uint64_t seed = std::uint64_t(done);
    const Tensors exact = random_inputs(law, what, Type::f64, seed);
    const Tensors want = apply(law, {exact, what.settings, Form::reference, context});
    const std::shared_ptr<const BoundLaw> bound = law.bind(what.settings);
    for (Type type : plan.types) {
      const Tensors inputs = random_inputs(law, what, type, seed);
      for (Form form : law.forms())
        if (bound->offers(form)) compare(apply(law, {inputs, what.settings, form, context}), want, form, type, what.label, table);
    }
    ++done;
    if (plan.progress) plan.progress(done, total);
  }
  return table.rows();
}

}  // namespace isomer
