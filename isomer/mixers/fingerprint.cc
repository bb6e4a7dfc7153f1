#include "isomer/mixers/fingerprint.h"

#include <cstdint>
#include <sstream>

namespace isomer::graph {

namespace {
/// FNV-1a.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ std::uint8_t(c)) * 0x100000001b3;
  return h;
}
}  // namespace

std::string fingerprint(const Graph& graph) {
  std::ostringstream text;
  text << graph.preset << '/' << graph.width;
  for (const auto& [name, value] : graph.options) text << '/' << name << '=' << value;
  for (const Node& node : graph.nodes) {
    text << '/' << node.work.index() << ':' << node.heads << 'x' << node.size;
    for (const int input : node.inputs) text << ',' << input;
  }
  std::ostringstream name;
  name << graph.preset << '-' << std::hex << hash(text.str());
  return name.str();
}

}  // namespace isomer::graph
