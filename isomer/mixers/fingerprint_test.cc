// The fingerprints of all presets: saved models and states belong to them. A preset that changes what runs changes its line here,
// on purpose, and the CHANGELOG says which files no longer load; the failing test prints the new line.
#include "isomer/mixers/fingerprint.h"

#include <gtest/gtest.h>

#include <map>

#include "isomer/mixers/preset.h"

namespace isomer {
namespace {

const std::map<std::string_view, std::string_view>& pinned() {
  static const std::map<std::string_view, std::string_view> all{
      {"based", "9011a654efff1595"},
      {"cosformer", "1d3ce11bd125feea"},
      {"deltanet", "d0fb6d3120445496"},
      {"fox", "58e6543d1c75789f"},
      {"gated-deltanet", "fa37e171a4eda164"},
      {"gla", "081a0f31c172bbac"},
      {"hedgehog", "b7a57c3960397dca"},
      {"hgrn2", "20c560a01a7455e9"},
      {"inline", "84ad5461334d7c03"},
      {"kda", "f477c16d4a720153"},
      {"linear-cosine", "5e036966d0a25ec9"},
      {"linear-elu", "f2ed2c1246a38541"},
      {"linear-exp", "dc70a96348d52e1e"},
      {"linear-identity", "519e86e64c3e5067"},
      {"linear-relu", "a2785c248826c174"},
      {"linear-softmax", "a7b878324920a545"},
      {"lru", "9e80f8c70299b78f"},
      {"luna", "7f4979cf576d8de7"},
      {"mamba", "1e456a3a488ef365"},
      {"mamba2", "02dc14e8512c88ef"},
      {"metala", "66f7880021e59520"},
      {"mlstm", "ad44485a5167d5a4"},
      {"mlstm-sig", "02326ef68531d17c"},
      {"normalized", "0498840a97ecb84e"},
      {"performer", "02c1d524c67d01d0"},
      {"qlstm", "f5e43c83e1b4863e"},
      {"qlstm-reversed", "8522e3783868d3ba"},
      {"retnet", "5d418cd03d9fc5a6"},
      {"rff", "df38d05c75a59653"},
      {"rg-lru", "d160d0390465a368"},
      {"rwkv6", "917e61a29db390ac"},
      {"rwkv7", "1ecf7c4c537af800"},
      {"s4d", "77180eac67f6521c"},
      {"s5", "867af6ad49c2b868"},
      {"sliding-window", "c9ab01ee6bb5f08d"},
      {"softmax", "37b0014e5b271c3c"},
      {"softmax-count", "b6a3d24a085ec036"},
      {"softmax-gate", "281a5c1992585e58"},
      {"softmax-norm", "54833d9811885dab"},
      {"t2r", "29f49b82592564c5"},
      {"taylor", "43f3de4d036a173e"},
  };
  return all;
}

TEST(Fingerprint, OfEveryPresetIsPinned) {
  for (const Preset* preset : presets()) {
    const std::string now = graph::fingerprint(build_mixer(*preset, {.width = 64}));
    const auto found = pinned().find(preset->name);
    EXPECT_TRUE(found != pinned().end() && found->second == now.substr(preset->name.size() + 1))
        << "      {\"" << preset->name << "\", \"" << now.substr(preset->name.size() + 1) << "\"},";
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
