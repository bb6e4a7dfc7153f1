// LUNA's features against others of the same number: how well each imitates the weights of softmax attention when queries and
// keys stay as they are, and what learning the projections W and the functions psi is worth there. One head of 16 numbers, 64
// tokens N(0, 1), scores of deviation 2 that every query sees in both directions. What a map has to learn is trained with AdamW
// on fresh tokens; the learning rate is the best of three on other tokens than those that are reported.
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "isomer/autograd/loss.h"
#include "isomer/mixers/preset.h"
#include "isomer/nn/init.h"
#include "isomer/nn/mixer.h"
#include "isomer/nn/optimiser.h"
#include "isomer/nn/schedule.h"
#include "isomer/study/claims/sources.h"
#include "isomer/study/lab.h"

namespace isomer::study {

namespace {

constexpr Index kWidth = 16, kTokens = 64, kBatch = 4;

/// A mixer whose queries and keys, before any feature map, are those of every other one of the same seed.
class Map {
 public:
  Map(const std::string& preset, Settings options, std::uint64_t seed)
      : mixer_(graph(preset, std::move(options)), parameters_, "") {
    initialise(parameters_, seed);
    for (const char* name : {"q.weight", "k.weight"}) {
      Rng rng{seed, std::uint64_t(name[0])};
      // Entries of variance 2 make q·k/4 one of deviation 2.
      for (float& w : parameters_.find(name).values()) w = float(std::sqrt(2.0) / 4 * rng.normal());
    }
  }
  /// Everything but queries and keys learns, unless its name begins like one of `frozen`.
  [[nodiscard]] bool learns(const std::set<std::string>& frozen) {
    parameters_.freeze([&](const std::string& name) {
      const std::string first = name.substr(0, name.find('.'));
      return first == "q" || first == "k" || first == "v" || first == "o" || frozen.contains(first);
    });
    return parameters_.trained_size() > 0;
  }
  /// Queries and keys as its law gets them.
  struct Read {
    Var<float> q, k;
  };
  [[nodiscard]] Read read(Tape<float>& tape, View<float, 4> x) const {
    const std::span<const Var<float>> values = mixer_.values(tape, tape.input(x));
    for (const graph::Node& node : mixer_.graph().nodes)
      if (const auto* law = std::get_if<graph::Law>(&node.work))
        return {values[std::size_t(node.inputs[std::size_t(law->find("q"))])],
                values[std::size_t(node.inputs[std::size_t(law->find("k"))])]};
    return {};
  }
  [[nodiscard]] Parameters<float>& parameters() { return parameters_; }

 private:
  [[nodiscard]] static graph::Graph graph(const std::string& preset, Settings options) {
    for (const auto& [key, value] : Settings{{"heads", "1"}, {"causal", "false"}, {"position", "none"}})
      options.emplace(key, value);
    return build_mixer(preset, {.width = kWidth}, options);
  }
  Parameters<float> parameters_;
  Mixer<float> mixer_;
};

/// How far a map's weights are from those of softmax: Σ_s A_ts log(A_ts / W_ts), the mean over queries.
class Imitation {
 public:
  Imitation(std::uint64_t seed, Context& context) : context_(context), seed_(seed), teacher_("softmax", {}, seed) {}

  struct Pupil {
    std::string preset;
    Settings options = {};
    std::set<std::string> frozen = {};
  };
  [[nodiscard]] double after(const Pupil& pupil, int steps) {
    double best = std::numeric_limits<double>::infinity(), reported = best;
    for (const double rate : {3e-3, 1e-2, 3e-2}) {
      Map map(pupil.preset, pupil.options, seed_);
      const bool learns = map.learns(pupil.frozen);
      if (learns) learn(map, steps, rate);
      const double validation = distance(map, 1);
      if (validation < best) best = validation, reported = distance(map, 2);
      if (!learns) break;
    }
    return reported;
  }

 private:
  View<float, 4> draw(Rng& rng) {
    x_.resize(std::size_t(kBatch * kTokens * kWidth));
    for (float& x : x_) x = float(rng.normal());
    return contiguous(x_.data(), {kBatch, kTokens, 1, kWidth});
  }
  [[nodiscard]] Var<float> divergence(Tape<float>& tape, const Map& map, View<float, 4> x) {
    Tape<float> watching(context_, Record::no);
    const Map::Read theirs = teacher_.read(watching, x), own = map.read(tape, x);
    return ops::attention_divergence<float>(tape,
                                            {.features_q = own.q, .features_k = own.k, .q = theirs.q.value, .k = theirs.k.value},
                                            {.direction = AttentionOptions::Direction::bidirectional});
  }
  void learn(Map& map, int steps, double rate) {
    Optimiser<float> optimiser(map.parameters(), {.weight_decay = 0});
    const Schedule schedule{.kind = Schedule::Kind::cosine, .steps = steps, .warmup = steps / 20, .final_fraction = 0};
    Tape<float> tape(context_);
    Rng rng{seed_, 100};
    for (int step = 0; step < steps; ++step) {
      const Var<float> loss = divergence(tape, map, draw(rng));
      tape.seed(loss).data[0] = 1;
      tape.backward();
      tape.clear();
      (void)optimiser.step(rate * factor(schedule, step), context_);
      map.parameters().zero_gradients();
    }
  }
  /// On tokens that nobody learned from; `which` tells sets of them apart.
  [[nodiscard]] double distance(const Map& map, std::uint64_t which) {
    constexpr int kBatches = 8;
    Rng rng{seed_, 200 + which};
    double sum = 0;
    Tape<float> tape(context_, Record::no);
    for (int i = 0; i < kBatches; ++i) {
      sum += double(divergence(tape, map, draw(rng)).value.data[0]) / kBatches;
      tape.clear();
    }
    return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
  }

  Context& context_;
  std::uint64_t seed_;
  Map teacher_;
  std::vector<float> x_;
};

const Imitation::Pupil kLuna{"luna", {{"features", "8"}, {"functions", "4"}}};

constexpr const char* kDistance =
    "divergence of the weights of softmax attention from a map's, in nats, the mean over queries; one head of 16, scores of "
    "deviation 2, 600 steps (quick: 200)";

Claim fit() {
  return {.id = "luna.fit",
          .statement =
              "With 32 features LUNA imitates softmax attention better than Hedgehog, and Hedgehog better than elu + 1; random "
              "features (Performer) do worse than learned ones.",
          .quantity = std::string(kDistance) + ". elu + 1 has the 16 features of its head, the others 32",
          .rule = all_of({ordering({"elu + 1", "Hedgehog", "LUNA"}, 0), greater("Performer", "LUNA", 0)}),
          .published = {{.name = "the learned kernel fits best", .where = "sections 3 and 4, direction only"}},
          .figure = {.kind = "bars",
                     .y = "divergence, nats",
                     .caption = "How far each map's weights stay from those of softmax; lower is better."},
          .otherwise =
              "the paper's order is of whole models: here Hedgehog has exp, softmax's own function, in all 16 directions, and "
              "LUNA's 32 features are 4 functions of 8; 16 directions with 2 functions were tried, too",
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            const int steps = budget.pick(200, 600);
            for (const std::uint64_t seed : budget.draws()) {
              Imitation imitation(seed, context);
              found.add("LUNA", imitation.after(kLuna, steps));
              found.add("LUNA, 16 directions with 2 functions",
                        imitation.after({"luna", {{"features", "16"}, {"functions", "2"}}}, steps));
              found.add("Hedgehog", imitation.after({"hedgehog", {{"form", "exp"}}}, steps));
              found.add("T2R", imitation.after({"t2r", {{"features", "32"}}}, steps));
              found.add("elu + 1", imitation.after({"linear-elu"}, steps));
              found.add("Performer", imitation.after({"performer", {{"features", "32"}}}, steps));
            }
          }};
}

Claim frozen() {
  return {.id = "luna.frozen",
          .statement = "Both the projections W and the functions psi have to be learned: with either frozen the fit is worse.",
          .quantity = kDistance,
          .rule = all_of({greater("W frozen", "LUNA", 0), greater("psi frozen", "LUNA", 0), greater("both frozen", "LUNA", 0)}),
          .published = {{.name = "all parts are trained", .where = "section 3, direction only; its ablation was not found"}},
          .figure = {.kind = "bars",
                     .y = "divergence, nats",
                     .caption = "What is lost when a part of LUNA does not learn; lower is better."},
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            const int steps = budget.pick(200, 600);
            const auto with = [](const std::set<std::string>& frozen) {
              Imitation::Pupil pupil = kLuna;
              pupil.frozen = frozen;
              return pupil;
            };
            for (const std::uint64_t seed : budget.draws()) {
              Imitation imitation(seed, context);
              found.add("LUNA", imitation.after(kLuna, steps));
              found.add("W frozen", imitation.after(with({"features"}), steps));
              found.add("psi frozen", imitation.after(with({"psi"}), steps));
              found.add("both frozen", imitation.after(with({"features", "psi"}), steps));
            }
          }};
}

Claim linear_time() {
  return {.id = "luna.linear-time",
          .statement = "A LUNA layer takes time in proportion to the number of tokens, a softmax layer more.",
          .quantity =
              "processor seconds of a layer of width 64 that sees all tokens, one thread, the least of five turns, against the "
              "number of tokens from 512 to 4096; nine rounds (quick: five), in each all lengths of both layers in turn",
          .rule = all_of({slope("LUNA", 0.85, 1.15), greater("slope of softmax", "slope of LUNA", 0.3)}),
          .published = {{.name = "linear cost", .where = "section 3, direction only"}},
          .figure = {.kind = "loglog",
                     .x = "tokens",
                     .y = "seconds",
                     .caption = "Twice the tokens take LUNA twice as long, softmax four times."},
          .measure = [](const Budget& budget, Context& context, Evidence& found) {
            const std::vector<Index> lengths{512, 1024, 2048, 4096};
            struct Layer {
              Layer(const char* named, const char* preset)
                  : name(named),
                    mixer(build_mixer(preset, {.width = 64}, {{"heads", "2"}, {"causal", "false"}, {"position", "none"}}),
                          parameters, "") {
                initialise(parameters, 1);
              }
              std::string name;
              Parameters<float> parameters;
              Mixer<float> mixer;
            };
            const std::array<std::unique_ptr<Layer>, 2> layers{std::make_unique<Layer>("LUNA", "luna"),
                                                               std::make_unique<Layer>("softmax", "softmax")};
            Rng rng{1};
            std::vector<float> x(4096 * 64);
            for (float& value : x) value = float(rng.normal());
            Tape<float> tape(context, Record::no);
            const auto seconds = [&](const Layer& layer, Index length) {
              double least = 1e300;
              for (int turn = 0; turn < 5; ++turn) {
                const ProcessorTime watch;
                (void)layer.mixer.forward(tape, tape.input(contiguous(x.data(), {1, length, 1, 64})));
                least = std::min(least, watch.seconds());
                tape.clear();
              }
              return least;
            };
            const std::vector<double> at(lengths.begin(), lengths.end());
            for (int round = 0; round < budget.pick(5, 9); ++round)
              for (const auto& layer : layers) {
                std::vector<double> times;
                for (const Index length : lengths) times.push_back(seconds(*layer, length));
                for (std::size_t i = 0; i < at.size(); ++i) found.add(layer->name, at[i], times[i]);
                found.add("slope of " + layer->name, log_slope(at, times));
              }
          }};
}

}  // namespace

std::vector<Claim> luna_features() { return {fit(), frozen(), linear_time()}; }

}  // namespace isomer::study
