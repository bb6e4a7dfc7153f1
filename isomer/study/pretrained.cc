#include "isomer/study/pretrained.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/models/pretrained.h"
#include "isomer/train/start.h"
#include "isomer/train/transfer.h"

namespace isomer::study {

namespace {
std::string cache_folder() {
  // Read once, before any cell begins.
  const char *const own = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  const std::string base = own != nullptr && *own != '\0' ? own : std::string(home != nullptr ? home : "") + "/.cache";
  return base + "/isomer/models/";
}

/// Of a sorted order: equal values have the mean of their places.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> places(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) places[order[i]] = double(first + end - 1) / 2;
    first = end;
  }
  return places;
}
}  // namespace

std::string model_folder(const std::string& name) {
  const std::string folder = cache_folder() + name;
  if (!is_there(folder)) throw Error("expected " + folder + ", got no such folder: tools/models " + name + " fetches it");
  return folder;
}

std::unique_ptr<Session> pretrained(const Recipe& recipe, const std::string& folder, const Overrides& task, Head head,
                                    Context& context) {
  Recipe own = recipe;
  own.model = {};
  own.model.from = folder;
  own.model.layers.clear();
  own.mixers.clear();
  own = with_task(own, own.task, task);
  auto session = head == Head::own ? std::make_unique<Session>(own, describe_model(folder), context)
                                   : std::make_unique<Session>(own, context);
  (void)start_from(session->parameters(), folder);
  return session;
}

ConvertedModel convert_as(const Recipe& recipe, Session& from, Context& context) {
  std::vector<std::string> names = layers_of(recipe.model);
  if (names.size() == 1) names.assign(from.config().layers.size(), names[0]);
  require(names.size() == from.config().layers.size(), "convert", "expected ", from.config().layers.size(), " layers, got ",
          names.size());
  std::set<std::string> mixers(names.begin(), names.end());
  mixers.erase("softmax");
  ConvertedModel to;
  std::vector<Index> all;
  for (const std::string& mixer : mixers) {
    ConversionRequest request{.mixer = mixer};
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == mixer) request.layers.push_back(Index(i));
    const auto options = recipe.mixers.find(mixer);
    if (options != recipe.mixers.end())
      for (const auto& [key, value] : options->second) request.overrides.push_back("mixer." + mixer + "." + key + "=" + value);
    const Conversion plan = plan_conversion(to.session ? *to.session : from, request);
    all.insert(all.end(), plan.layers.begin(), plan.layers.end());
    to.session = std::make_unique<Session>(plan.recipe, plan.model, context);
  }
  require(to.session != nullptr, "convert", "expected a mixer beside softmax, got none");
  std::ranges::sort(all);
  to.fates = take_weights(from, *to.session, all);
  return to;
}

void transfer_new(Session& from, ConvertedModel& to, Index steps, Context& context) {
  std::set<Index> learning;
  for (const ConvertedParameter& p : to.fates)
    if (p.layer >= 0 && p.fate == ConvertedParameter::Fate::fresh && to.session->parameters().find(p.name).trained())
      learning.insert(p.layer);
  std::vector<ConvertedParameter> fates;
  std::ranges::copy_if(to.fates, std::back_inserter(fates), [&](const auto& p) { return learning.contains(p.layer); });
  if (!fates.empty()) (void)transfer(from, *to.session, fates, {.steps = steps}, context);
}

std::vector<CellPoint> distilled(Session& from, ConvertedModel& to, const TrainRecipe& train, Context& context,
                                 const CellProgress& progress) {
  bool stopped = false;
  DistilOptions options{.steps = train.steps, .lr = train.lr, .looks = 12, .examples = 2 * train.batch};
  options.progress = [&](Index step, double) {
    stopped = progress && !progress(double(step) / double(train.steps));
    return !stopped;
  };
  const DistilReport report = distil(from, *to.session, options, context);
  if (stopped) throw Error("stopped");
  std::vector<CellPoint> curve;
  for (const DistilReport::Point& point : report.curve) curve.push_back({point.step, point.loss, point.loss});
  return curve;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  require(a.size() == b.size() && a.size() > 1, "spearman", "expected as many values of both, and two, got ", a.size(), " and ",
          b.size());
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = double(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

}  // namespace isomer::study
