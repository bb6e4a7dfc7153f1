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
      // GOLDEN
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
