# isomer/mixers/presets/a_b.cc defines `extern const Preset a_b` in isomer::preset; the list of them is written here, so that a
# new preset is a new file and nothing else.
function(isomer_preset_list target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/isomer/mixers/presets/*.cc)
  set(declarations)
  set(addresses)
  foreach(file IN LISTS files)
    cmake_path(GET file STEM name)
    string(APPEND declarations "extern const Preset ${name};\n")
    string(APPEND addresses "    &preset::${name},\n")
  endforeach()
  file(
    CONFIGURE
    OUTPUT ${PROJECT_BINARY_DIR}/generated/preset_list.cc
    CONTENT
      [[#include "isomer/mixers/preset_list.h"

namespace isomer {

namespace preset {
@declarations@}  // namespace preset

std::span<const Preset* const> internal::preset_list() {
  static constexpr const Preset* kAll[] = {
@addresses@  };
  return kAll;
}

}  // namespace isomer
]]
    @ONLY)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated/preset_list.cc)
endfunction()
