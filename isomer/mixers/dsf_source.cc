#include "isomer/mixers/dsf_source.h"

#include <algorithm>
#include <array>

#include "isomer/base/error.h"
#include "isomer/laws/shapes.h"

namespace isomer {

namespace dsf_detail {

Vector Source::row(std::string_view name, Index t) const {
  const auto x = tensor(name).view<const double, 4>();
  const Index g = group_of(place.head, size("H"), x.shape[2]);
  Vector values;
  for (Index i = 0; i < x.shape[3]; ++i) values.push_back(x(sequence.batch, sequence.first + t, g, i));
  return values;
}

double Source::number(std::string_view name, Index t, double fallback) const {
  if (!given(name)) return fallback;
  const Tensor& x = tensor(name);
  if (x.shape().size() == 1) return x.data<double>()[place.head];
  return x.view<const double, 3>()(sequence.batch, sequence.first + t, place.head);
}

Vector Source::plain_row(std::string_view name, Index t) const {
  const auto x = tensor(name).view<const double, 3>();
  Vector values;
  for (Index i = 0; i < x.shape[2]; ++i) values.push_back(x(sequence.batch, sequence.first + t, i));
  return values;
}

Vector Source::state(std::string_view name, Index length, Heads heads) const {
  if (!given(name)) return Vector(std::size_t(length), 0.0);
  const Index index = heads == Heads::none ? place.sequence : place.sequence * size("H") + place.head;
  const double* first = tensor(name).data<double>() + index * length;
  return {first, first + length};
}

Dsf Source::blank(Index T, Index channels, Index features, Index groups) const {
  Dsf system{.T = T, .channels = channels, .features = features, .groups = groups};
  const std::vector<Complex> zeros(std::size_t(features), Complex(0)), ones(std::size_t(features), Complex(1));
  system.tokens.assign(std::size_t(T * groups), {.decay = ones, .left = {}, .right = {}, .B = zeros, .C = zeros});
  system.initial.assign(std::size_t(channels * features), Complex(0));
  return system;
}

void normalise(Dsf& system, const Vector& eta, const Source& from) {
  const bool carried = std::any_of(system.initial.begin(), system.initial.end(), [](Complex x) { return x != Complex(0); });
  for (Index t = 0; t < system.T; ++t)
    for (Index g = 0; g < system.groups; ++g) {
      DsfToken& token = system.token(t, g);
      if (from.options.eta == DsfOptions::Eta::read_out) {
        for (Complex& x : token.C) x /= eta[t];
        continue;
      }
      const double before = t > 0 ? eta[t - 1] : carried ? 1 : eta[t];
      for (Complex& x : token.decay) x *= before / eta[t];
      for (Complex& x : token.left) x *= before / eta[t];
      for (Complex& x : token.B) x /= eta[t];
    }
}

}  // namespace dsf_detail

namespace {

using namespace dsf_detail;

struct Realisation {
  std::string_view law;
  Dsf (*realise)(const Source&);
};
constexpr std::array<Realisation, 5> kRealisations{{{"attention", &realise_attention},
                                                    {"scalar_decay", &realise_scalar_decay},
                                                    {"channel_decay", &realise_channel_decay},
                                                    {"delta", &realise_delta},
                                                    {"scan", &realise_scan}}};

Source source_of(const Law& law, const Tensors& inputs, const Settings& settings, DsfPlace place, const DsfOptions& options) {
  for (const auto& [name, tensor] : inputs)
    require(tensor.type() == Type::f64 || name == "offsets", "dsf", "expected ", name, " of type F64, got ",
            name_of(tensor.type()));
  require(read_bool(settings, "causal", true), "dsf", "expected a causal law");
  Source from{inputs, settings, bind_sizes(law, inputs), {}, place, options};
  std::span<const std::int64_t> offsets;
  if (from.given("offsets")) {
    const Tensor& packed = from.tensor("offsets");
    offsets = {packed.data<std::int64_t>(), std::size_t(packed.size())};
  }
  const auto all = sequences("dsf", from.size("B"), from.size("T"), offsets);
  require(place.sequence >= 0 && place.sequence < Index(all.size()), "dsf", "expected a sequence below ", all.size(), ", got ",
          place.sequence);
  const Index H = from.sizes.contains("H") ? from.size("H") : 1;
  require(place.head >= 0 && place.head < H, "dsf", "expected a head below ", H, ", got ", place.head);
  from.sequence = all[std::size_t(place.sequence)];
  return from;
}

/// The numbers of a tensor [B,T,H,D] or [B,T,D] as the real or imaginary part of a signal; `skip` tokens are left out.
void put(const Source& from, const Tensor& tensor, Index skip, Complex unit, Signal& to) {
  const bool heads = tensor.shape().size() == 4;
  const Index rows = tensor.shape()[1], G = heads ? tensor.shape()[2] : 1, D = tensor.shape().back();
  const Index g = heads ? group_of(from.place.head, from.size("H"), G) : 0;
  for (Index t = 0; t < to.T; ++t)
    for (Index c = 0; c < D; ++c) {
      const Index at = ((from.sequence.batch * rows + from.sequence.first + skip + t) * G + g) * D + c;
      to(t, c) += unit * tensor.data<double>()[at];
    }
}

}  // namespace

Dsf realise(const Law& law, const Tensors& inputs, const Settings& settings, DsfPlace place, const DsfOptions& options) {
  const auto found = std::find_if(kRealisations.begin(), kRealisations.end(), [&](const auto& r) { return r.law == law.name(); });
  require(found != kRealisations.end(), "dsf", "expected a law with a known realisation, got ", law.name());
  return found->realise(source_of(law, inputs, settings, place, options));
}

Signal written(const Law& law, const Tensors& inputs, DsfPlace place) {
  const Source from = source_of(law, inputs, {}, place, {});
  const bool scan = law.name() == "scan";
  const Tensor& v = from.tensor(scan ? "x" : "v");
  Signal u{from.sequence.length, v.shape().back()};
  // Keys before the first query are in the initial state.
  put(from, v, v.shape()[1] - from.size("T"), 1, u);
  if (from.given("x_imag")) put(from, from.tensor("x_imag"), 0, {0, 1}, u);
  return u;
}

Signal read(const Law& law, const Tensors& inputs, const Tensors& outputs, DsfPlace place) {
  const Source from = source_of(law, inputs, {}, place, {});
  const Tensor& o = outputs.contains("o") ? outputs.at("o") : outputs.at("h");
  Signal y{from.sequence.length, o.shape().back()};
  put(from, o, 0, 1, y);
  if (outputs.contains("h_imag")) put(from, outputs.at("h_imag"), 0, {0, 1}, y);
  return y;
}

}  // namespace isomer
