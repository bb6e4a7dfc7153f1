// MAD: in-context recall where keys and values are one to three tokens long.
#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/tasks/draw.h"
#include "isomer/tasks/list.h"

namespace isomer {

namespace {
constexpr std::array<OptionSpec, 3> kOptions{{
    {"vocabulary", "16", "keys are of its lower half, values of its upper half, the last token is padding on the left"},
    {"length", "128", "tokens"},
    {"longest", "3", "tokens of the longest key or value; test keys always have so many"},
}};

constexpr Index kLongest = 4;

/// Different tokens of one half of the vocabulary.
struct Motif {
  std::array<std::int64_t, kLongest> tokens{};
  std::size_t size = 0;
  bool operator==(const Motif&) const = default;
};

class MadFuzzy final : public Task {
 public:
  explicit MadFuzzy(const TaskOptions& options) : Task(options), longest_(std::size_t(options.size("longest", 1, kLongest))) {
    const Index vocabulary = options.size("vocabulary", 3, 1 << 20), length = options.size("length", 2, 1 << 20);
    const Index longest = Index(longest_);
    require((vocabulary - 1) / 2 >= longest, "mad-fuzzy", "expected a vocabulary of at least ", 2 * longest + 1, ", got ",
            vocabulary);
    // Room for the asked pair twice and one more.
    require(length >= 6 * longest, "mad-fuzzy", "expected a length of at least ", 6 * longest, ", got ", length);
    shape_ = {.length = length, .vocabulary = vocabulary, .classes = vocabulary, .padding = vocabulary - 1};
  }

 private:
  /// What has been written so far: tokens and whether each is asked for in the test, and where known keys stand.
  struct Writer {
    std::span<std::int64_t> tokens, asked, keys;
    std::size_t size = 0, known = 0;

    void put(const Motif& motif, bool ask) {
      for (std::size_t i = 0; i < motif.size; ++i) {
        asked[size] = ask ? 1 : 0;
        tokens[size++] = motif.tokens[i];
      }
    }
    void remember() { keys[known++] = std::int64_t(size); }
    [[nodiscard]] Motif read(std::size_t at, std::size_t count) const {
      Motif motif{.tokens = {}, .size = count};
      std::copy_n(tokens.begin() + std::ptrdiff_t(at), count, motif.tokens.begin());
      return motif;
    }
  };

  [[nodiscard]] Index keys() const { return (shape_.vocabulary - 1) / 2; }
  [[nodiscard]] bool is_value(std::int64_t token) const { return token >= keys() && token < shape_.padding; }

  [[nodiscard]] Motif draw_motif(Rng& rng, std::size_t size, Index from, Index to) const {
    Motif motif{.tokens = {}, .size = size};
    const std::span<std::int64_t> tokens(motif.tokens.data(), size);
    draw::distinct(rng, std::uint64_t(to - from), tokens);
    for (std::int64_t& token : tokens) token += from;
    return motif;
  }
  [[nodiscard]] Motif draw_key(Example& e) const {
    const std::size_t size = e.split == Split::test ? longest_ : 1 + e.rng.below(longest_);
    return draw_motif(e.rng, size, 0, keys());
  }
  [[nodiscard]] Motif draw_value(Example& e) const {
    return draw_motif(e.rng, 1 + e.rng.below(longest_), keys(), shape_.padding);
  }

  /// The value that follows an earlier occurrence of the key; of no size when there is none.
  [[nodiscard]] Motif value_of(const Writer& out, const Motif& key) const {
    for (std::size_t i = 0; i < out.known; ++i) {
      const std::size_t at = std::size_t(out.keys[i]);
      std::size_t value = at;
      while (!is_value(out.tokens[value])) ++value;
      std::size_t end = value;
      while (end < out.size && is_value(out.tokens[end])) ++end;
      if (out.read(at, value - at) == key) return out.read(value, end - value);
    }
    return {};
  }

  void put_pair(Writer& out, const Motif& key, const Motif& value, bool ask) const {
    if (!ask) out.remember();
    out.put(key, false);
    out.put(value, ask);
  }

  void draw(Example& e) const override {
    const std::size_t T = e.tokens.size(), room = T + 1;
    e.scratch.integers.resize(3 * room);
    const std::span<std::int64_t> all(e.scratch.integers);
    Writer out{.tokens = all.subspan(0, room), .asked = all.subspan(room, room), .keys = all.subspan(2 * room, room)};
    const Motif probe = draw_key(e), answer = draw_value(e);
    const std::size_t end = T - probe.size - answer.size - 2 * longest_;
    // Early enough that no other pair can step over it: it is always there before it is asked for.
    const std::size_t at = e.rng.below(end - 2 * longest_ + 1);
    bool there = false;
    while (out.size < end) {
      const bool now = !there && out.size >= at;
      const Motif key = now ? probe : draw_key(e);
      Motif value = key == probe ? answer : value_of(out, key);
      const bool known = key == probe ? there : value.size > 0;
      there = there || key == probe;
      if (value.size == 0) value = draw_value(e);
      put_pair(out, key, value, known);
    }
    put_pair(out, probe, answer, true);
    // Padding stands on the left; the last token is a label only.
    const std::size_t pad = room - out.size;
    for (std::size_t t = 0; t < T; ++t) {
      if (t >= pad) e.tokens[t] = out.tokens[t - pad];
      const std::int64_t next = t + 1 >= pad ? out.tokens[t + 1 - pad] : shape_.padding;
      if (e.split == Split::train || (t + 1 >= pad && out.asked[t + 1 - pad] == 1)) e.labels[t] = next;
    }
  }

  std::size_t longest_;
};
}  // namespace

const TaskType task::mad_fuzzy{
    .name = "mad-fuzzy",
    .source = "Poli et al. 2024 (MAD)",
    .summary = "in-context recall where keys and values are one to three tokens long",
    .own_options = kOptions,
    .train_examples = "12800",
    .test_examples = "1280",
    .make = [](const TaskOptions& options) -> std::unique_ptr<Task> { return std::make_unique<MadFuzzy>(options); },
};

}  // namespace isomer
