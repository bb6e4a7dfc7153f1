# isomer/io/safetensors_fuzz.cc -> fuzz_safetensors. Needs clang; the preset `fuzz` has the rest. What the fuzzed readers are made of is
# compiled here with coverage and sanitizers, and nothing else, since that takes minutes; what they call comes from the release library.
set(ISOMER_FUZZ_LIBRARY ${PROJECT_SOURCE_DIR}/build/libisomer.a CACHE FILEPATH "The library, as `make build` makes it")
file(GLOB READERS CONFIGURE_DEPENDS isomer/models/config*.cc isomer/models/tokenizer*.cc isomer/models/tokenizers/*.cc
     isomer/models/byte_pairs*.cc isomer/models/foreign/*.cc)
foreach(name IN ITEMS base/error base/settings base/suggest base/tensor base/tensor_view io/gguf io/gguf_dequantise
                      io/gguf_header io/idx io/json io/mapping io/safetensors io/safetensors_header io/unicode io/utf8)
  list(APPEND READERS isomer/${name}.cc)
endforeach()
list(FILTER READERS EXCLUDE REGEX "_(test|fuzz|train)\\.cc$")
file(GLOB_RECURSE FUZZ_SOURCES CONFIGURE_DEPENDS isomer/*_fuzz.cc)
set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
add_library(readers OBJECT ${READERS})
target_include_directories(readers PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_options(readers PUBLIC ${sanitizers} PRIVATE -fsanitize=fuzzer-no-link)
target_link_libraries(readers PUBLIC isomer_flags)
foreach(file IN LISTS FUZZ_SOURCES)
  cmake_path(GET file STEM stem)
  string(REGEX REPLACE "(.*)_fuzz$" "fuzz_\\1" name ${stem})
  add_executable(${name} ${file})
  # The library is asked only for what the readers do not define; a member that holds more, since files are compiled together, comes second.
  target_link_libraries(${name} PRIVATE readers ${ISOMER_FUZZ_LIBRARY} ZLIB::ZLIB utf8proc Threads::Threads)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined -Wl,--allow-multiple-definition)
endforeach()
