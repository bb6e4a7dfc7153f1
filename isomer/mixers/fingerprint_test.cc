// The fingerprints of all presets: saved models and states belong to them. A preset that changes what runs changes its line here,
// on purpose, and the CHANGELOG says which files no longer load; the failing test prints the new line.
#include "isomer/mixers/fingerprint.h"

#include <gtest/gtest.h>

#include <map>

#include "isomer/base/error.h"
#include "isomer/base/hash.h"
#include "isomer/mixers/preset.h"

namespace isomer {
namespace {

struct Pinned {
  std::string_view plain;
  std::string_view others;  // all that options make of it; a new option changes this one
};

const std::map<std::string_view, Pinned>& pinned() {
  static const std::map<std::string_view, Pinned> all{
      {"based", {"9011a654efff1595", "dbd0f098279b0905"}},
      {"cosformer", {"1d3ce11bd125feea", "c0636e2bdf9e271f"}},
      {"deltanet", {"d0fb6d3120445496", "66b42759ed1fd961"}},
      {"fox", {"58e6543d1c75789f", "5a3c291b66d7d10f"}},
      {"gated-deltanet", {"fa37e171a4eda164", "09201ca01e776879"}},
      {"gla", {"081a0f31c172bbac", "13365e522a655bcd"}},
      {"hedgehog", {"b7a57c3960397dca", "3027d8a073bf9691"}},
      {"hgrn2", {"20c560a01a7455e9", "10bf2ccdb5077fb1"}},
      {"inline", {"84ad5461334d7c03", "c93cc10415dffe25"}},
      {"kda", {"f477c16d4a720153", "5011263bbe692e11"}},
      {"linear-cosine", {"5e036966d0a25ec9", "54a2a17cead21ca9"}},
      {"linear-elu", {"f2ed2c1246a38541", "9a08c17fadc82571"}},
      {"linear-exp", {"dc70a96348d52e1e", "57dc39319ba67e25"}},
      {"linear-identity", {"519e86e64c3e5067", "dbba06d454707f03"}},
      {"linear-relu", {"a2785c248826c174", "a883dbdba8adf9ad"}},
      {"linear-softmax", {"a7b878324920a545", "3a583a4eb9dddf29"}},
      {"lru", {"9e80f8c70299b78f", "a5968f7622c2b475"}},
      {"luna", {"7f4979cf576d8de7", "2bd00001cec0ad69"}},
      {"mamba", {"1e456a3a488ef365", "587c6cc8e11fc313"}},
      {"mamba2", {"02dc14e8512c88ef", "3e9f6700bb4a535f"}},
      {"metala", {"66f7880021e59520", "f401a43eca09ba35"}},
      {"mlstm", {"ad44485a5167d5a4", "edeeb1700cc00375"}},
      {"mlstm-sig", {"02326ef68531d17c", "00bf9fbfc6884751"}},
      {"normalized", {"0498840a97ecb84e", "e2265453ace52ebf"}},
      {"performer", {"02c1d524c67d01d0", "7656e21134406265"}},
      {"qlstm", {"f5e43c83e1b4863e", "f7bbec39af3ce791"}},
      {"qlstm-reversed", {"8522e3783868d3ba", "9b3fb9ab95742a99"}},
      {"retnet", {"5d418cd03d9fc5a6", "ab6f26454ae39add"}},
      {"rff", {"df38d05c75a59653", "8a63271c026eb297"}},
      {"rg-lru", {"d160d0390465a368", "9d75890b51cc7fa5"}},
      {"rwkv6", {"917e61a29db390ac", "397505df88ee87dd"}},
      {"rwkv7", {"1ecf7c4c537af800", "de92b89e411f779d"}},
      {"s4d", {"77180eac67f6521c", "877bf617bf644575"}},
      {"s5", {"867af6ad49c2b868", "a80547dfd6934355"}},
      {"sliding-window", {"c9ab01ee6bb5f08d", "f75695a867b5ae9b"}},
      {"softmax", {"37b0014e5b271c3c", "5a8afddda17cf19d"}},
      {"softmax-count", {"b6a3d24a085ec036", "1d65f7098efa98c7"}},
      {"softmax-gate", {"281a5c1992585e58", "f7f2b88852e3bd6d"}},
      {"softmax-norm", {"54833d9811885dab", "7af13965bcf3a1fb"}},
      {"t2r", {"29f49b82592564c5", "bdb142f3c5aa4dbb"}},
      {"taylor", {"43f3de4d036a173e", "23f0e54fea33dd15"}},
  };
  return all;
}

/// Each choice and flag another than it is, each size that may be 0 turned on or off.
std::vector<Settings> turned(const Preset& preset, const Place& place, const Settings& settings) {
  std::vector<Settings> all;
  const auto add = [&](const std::string& name, const std::string& value) {
    all.push_back(settings);
    all.back().insert_or_assign(name, value);
  };
  for (const MixerOption& option : options_of(preset, place, settings)) {
    if (!option.applies || settings.contains(option.name)) continue;
    if (option.kind == MixerOption::Kind::flag) add(option.name, option.fallback == "true" ? "false" : "true");
    if (option.kind == MixerOption::Kind::size && option.least == 0) add(option.name, option.fallback == "0" ? "4" : "0");
    for (const std::string& choice : option.choices)
      if (choice != option.fallback) add(option.name, choice);
  }
  return all;
}

/// A hash of the graphs with one and with two options turned; combinations that the preset refuses count as nothing.
std::string others(const Preset& preset) {
  std::uint64_t hash = kHashStart;
  const auto built = [&](const Place& place, const Settings& settings) {
    try {
      hash = hash_of(graph::dump(build_mixer(preset, place, settings)), hash);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (const Place& place : {Place{.width = 64}, Place{.width = 64, .layer = 1, .layers = 2, .before = 1}}) {
    EXPECT_TRUE(built(place, {}));
    for (const Settings& one : turned(preset, place, {}))
      if (built(place, one))
        for (const Settings& two : turned(preset, place, one)) (void)built(place, two);
  }
  return hex_of(hash);
}

// Graphs are hashed as they were built, so that a preset whose nodes come in another order with another compiler is found, too.
TEST(Fingerprint, OfEveryPresetIsPinned) {
  for (const Preset* preset : presets()) {
    const std::string plain = graph::fingerprint(build_mixer(*preset, {.width = 64})).substr(preset->name.size() + 1);
    const std::string changed = others(*preset);
    const auto found = pinned().find(preset->name);
    EXPECT_TRUE(found != pinned().end() && found->second.plain == plain && found->second.others == changed)
        << "      {\"" << preset->name << "\", {\"" << plain << "\", \"" << changed << "\"}},";
  }
  EXPECT_EQ(pinned().size(), presets().size());
}

TEST(Fingerprint, LeavesOutWhatIsAtItsDefault) {
  const std::string plain = graph::dump(build_mixer("gla", {.width = 64}));
  EXPECT_EQ(graph::dump(build_mixer("gla", {.width = 64}, {{"gate_power", "16"}})), plain);
  EXPECT_EQ(plain.find("gate_power"), std::string::npos) << plain;
  EXPECT_NE(graph::dump(build_mixer("gla", {.width = 64}, {{"gate_power", "8"}})).find("gate_power=8\n"), std::string::npos);
}

TEST(Fingerprint, IsMadeOfNames) {
  const std::string text = graph::dump(build_mixer("softmax", {.width = 64}, {{"position", "none"}}));
  EXPECT_NE(text.find("\nlaw 4x16  attention q k v #"), std::string::npos) << text;
  EXPECT_NE(graph::dump(build_mixer("gla", {.width = 64})).find("\nmap 1x32  log_sigmoid #"), std::string::npos);
}

}  // namespace
}  // namespace isomer
