# isomer/mixers/presets/a_b.cc defines `extern const Preset a_b` in isomer::preset::a_b. A source that is written here includes them
# all and lists them, so that a new preset is a new file and nothing else, and headers are read once instead of once a preset.
function(isomer_write_preset_list output)
  set(includes)
  set(addresses)
  foreach(file IN LISTS ARGN)
    cmake_path(GET file STEM name)
    string(APPEND includes "#include \"${file}\"\n")
    # The compiler shows the line when there is no such constant.
    string(APPEND addresses
           "    &preset::${name}::${name},  // presets/${name}.cc must have: namespace isomer::preset::${name}, extern const Preset ${name}\n")
  endforeach()
  file(
    CONFIGURE
    OUTPUT ${output}
    CONTENT
      [[#include "isomer/mixers/preset_list.h"

@includes@
namespace isomer {

std::span<const Preset* const> internal::preset_list() {
  static constexpr const Preset* kAll[] = {
@addresses@  };
  return kAll;
}

}  // namespace isomer
]]
    @ONLY)
endfunction()
