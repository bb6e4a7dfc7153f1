#include "isomer/laws/bound_law.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/laws/dsf.h"

namespace isomer {

bool BoundLaw::offers(Form form) const {
  // A step goes from one token to the next, so it has no meaning where all tokens are seen at once.
  if (form == Form::step && !causal()) return false;
  const auto all = law().forms();
  return form == Form::automatic || std::find(all.begin(), all.end(), form) != all.end();
}

bool BoundLaw::uses(std::string_view, Given) const { return true; }

bool BoundLaw::needs(const TensorSpec& spec, Given) const { return spec.required; }

std::span<const Axes> BoundLaw::axes(const TensorSpec& spec, Given) const { return spec.all(); }

Choice BoundLaw::plan(const LawSizes&, Given, bool) const { return {Form::chunk, 0}; }

std::string BoundLaw::plan_reason(const LawSizes& sizes, const Choice& choice) const {
  if (choice.form == Form::step) return sizes.T == 1 ? "one token" : "so few tokens cost less one by one than as matrix products";
  if (choice.form == Form::parallel) return "one chunk holds all tokens, and no state comes in or is wanted";
  return "matrix products between tokens grow with the chunk, work on the state (K = " + std::to_string(sizes.K) +
         ", V = " + std::to_string(sizes.V) + ") falls with it; their sum is least there";
}

bool BoundLaw::has_state(const StateSpec& state, Given given) const {
  return state.grows() ? given[state.input] : uses(law().outputs()[state.output].name, given);
}

const Axes& BoundLaw::state_axes(const StateSpec& state, Given given) const {
  return axes(state.grows() ? law().inputs()[state.input] : law().outputs()[state.output], given)[0];
}

StateSize BoundLaw::state_size(const LawSizes& sizes, Given given) const {
  LawSizes one = sizes;
  one.B = one.n = one.S = 1;
  StateSize size;
  for (const StateSpec& state : law().states()) {
    if (!has_state(state, given)) continue;
    Index numbers = 1;
    for (const Letter letter : state_axes(state, given)) numbers *= one[letter];
    (state.grows() ? size.per_token : size.fixed) += numbers;
  }
  return size;
}

double BoundLaw::taped_floats(const LawSizes& sizes, Given given) const {
  const Index chunk = plan(sizes, given, true).chunk;
  return double(state_size(sizes, given).fixed) / double(chunk > 0 ? std::min(chunk, sizes.T) : sizes.T);
}

StateDimension BoundLaw::state_dimension(const LawSizes& sizes, Given) const { return {sizes.K, sizes.H * sizes.V}; }

std::unique_ptr<LawStream> BoundLaw::start(Type, const LawSizes&) const { return nullptr; }

void BoundLaw::stream(const LawViews&, const LawViews&, LawStream&, Context&) const {
  ISOMER_ASSERT(false, "a law that starts a stream goes on with it");
}

std::string_view BoundLaw::symbol(const TensorSpec& input, Given) const { return input.name; }

Dsf BoundLaw::system(const DsfSource&) const { fail("dsf", "expected a law with a known realisation, got ", law().name()); }

void internal::unknown_letter(std::string_view text) {
  isomer::fail("axes", "expected at most four letters of B T S Gq Gk Gv H K V N C n, got ", text);
}

BoundCase::BoundCase(const Law& law, const BenchCase& what) : sizes(law.bench_sizes(what)) {
  std::string names;
  for (const BenchVariant& variant : law.variants()) {
    const bool last = &variant == &law.variants().back();
    names.append(names.empty() ? "" : last ? " or " : ", ").append(variant.name);
    if (variant.name != what.variant) continue;
    Settings settings = variant.settings;
    if (what.window > 0) settings["window"] = std::to_string(what.window);
    bound = law.bind(settings);
    for (std::size_t i = 0; i < law.inputs().size(); ++i)
      if (const TensorSpec& spec = law.inputs()[i]; spec.required || std::ranges::count(variant.with, spec.name) > 0)
        given.add(i);
  }
  require(bound != nullptr, std::string(law.name()).c_str(), "expected the variant ", names, ", got ", what.variant);
}

Choice BoundCase::plan(const BenchCase& what) const {
  if (what.direction == "step") return {Form::step, 0};
  return bound->plan(sizes, given, what.direction.ends_with("backward"));
}

}  // namespace isomer
