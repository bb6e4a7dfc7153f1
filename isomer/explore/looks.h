#pragma once
// What there is to see of a subject, as data for a page. Numbers have four digits; those that are not finite are null.
//
//   const Sight sight(fresh_subject({.preset = "gla", .words = words}), context);
//   const Json answer = view_json(sight, {.head = 1});
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "isomer/explore/subject.h"
#include "isomer/io/json.h"
#include "isomer/nn/mixer_dsf.h"

namespace isomer {

/// A subject with the calls of its laws, which all looks begin with. Constant: several threads may look.
class Sight {
 public:
  Sight(std::unique_ptr<const Subject> subject, Context& context);
  [[nodiscard]] const Subject& subject() const { return *subject_; }

  /// A head of a law of a layer.
  struct Head {
    const LawCall* call;
    Index layer, head;
    [[nodiscard]] DsfPlace place() const { return {.sequence = 0, .head = head}; }
    [[nodiscard]] Dsf system() const { return realise(find_law(call->law), call->inputs, call->settings, place()); }
    /// False: it sees whole sequences, and has no state and no system.
    [[nodiscard]] bool causal() const;
    [[nodiscard]] DsfWeights weights() const;
    [[nodiscard]] Signal written() const { return isomer::written(find_law(call->law), call->inputs, place()); }
  };
  /// Throws Error when there is no such layer.
  [[nodiscard]] const std::vector<Head>& heads(Index layer) const;
  /// Throws Error when there is no such head, counted over all laws of the layer.
  [[nodiscard]] const Head& head(Index layer, Index head) const;

 private:
  std::unique_ptr<const Subject> subject_;
  std::vector<std::vector<LawCall>> calls_;  // by layer
  std::vector<std::vector<Head>> heads_;
};

/// Which head and token; those that a look does not need are not read.
struct Where {
  Index layer = 0, head = 0, token = 0;
  std::optional<std::string> other = {};  // the word in the place of the token's
};

/// The layer (layer_json) and one head: {…, "layers", "layer", "head", "view"}. A view has its effective attention `matrix` (row
/// t: its weights on tokens 0 … t, or on all where it is not `causal`) and memory `horizon`.
[[nodiscard]] Json view_json(const Sight& sight, const Where& where);
/// {"heads"}: the views of all heads of a layer.
[[nodiscard]] Json maps_json(const Sight& sight, const Where& where);
/// For each token the least and largest `sizes` and `angles` of eigenvalues (null where there are too many features), the `norm`
/// and stable `rank` of the state, the share that is `kept` of it and how much is `written` to it. Throws Error for a head that
/// sees whole sequences, as state_json does.
[[nodiscard]] Json curves_json(const Sight& sight, const Where& where);
/// At one token: the state as what is `kept` and what is `written` [channels, features], and the `eigenvalues` (real, imaginary);
/// `complex` states are shown by their sizes.
[[nodiscard]] Json state_json(const Sight& sight, const Where& where);
/// {"token", "word", "other", "moved"}: how far each output moves when the word is another one, over the mean size of outputs.
[[nodiscard]] Json influence_json(const Sight& sight, const Where& where, Context& context);
/// {"terms"}: the values at a token of what the equations name, and the parameters by their shapes and sizes.
[[nodiscard]] Json terms_json(const Sight& sight, const Where& where, Context& context);

// For whoever makes other data of these.
[[nodiscard]] Json rounded(double x);
[[nodiscard]] Json rounded(const std::vector<double>& all);
[[nodiscard]] Json view_of(const Sight::Head& head);
[[nodiscard]] Json curves_of(const Sight::Head& head);
/// Of Λ: [[real, imaginary], …]; null where there are too many features.
[[nodiscard]] Json eigenvalues_of(const Dsf& system, Index token);
/// {"preset", "law", "source", "summary", "equations", "options", "changed", "words"}: `changed` has settings that are not the
/// preset's own.
[[nodiscard]] Json layer_json(const Subject& subject, Index layer);

}  // namespace isomer
