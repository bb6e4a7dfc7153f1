# What is not arithmetic: tables of names and sizes, specs, rows, and what only calls kernels. All but base, kernels, laws and tasks,
# dynamical systems, and quantised numbers. It is an object library with its own flags; most of the compile time of such a file goes
# into headers, so files of one folder are compiled together.
set(ISOMER_TOGETHER 8)  # so many; touching one must not take longer than ten seconds

# Moves the plain ones of the sources in `list` into `output`.
function(isomer_take_plain list output)
  set(plain "_law\\.cc$|/isomer/(mixers|autograd|nn|models|bench|explore|report|study|train)/|/(json|table)\\.cc$")
  if(ISOMER_SANITIZE)
    string(APPEND plain "|/isomer/tasks/")
  else()
    string(APPEND plain "|/isomer/io/")
  endif()
  set(taken ${${list}})
  list(FILTER taken INCLUDE REGEX "${plain}")
  list(FILTER taken EXCLUDE REGEX "/mixers/dsf_[a-z]+\\.cc$|_dequantise\\.cc$")
  list(REMOVE_ITEM ${list} ${taken})
  set(${list} ${${list}} PARENT_SCOPE)
  set(${output} ${taken} PARENT_SCOPE)
endfunction()

function(isomer_precompile target)
  if(ISOMER_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <optional>
                              <span> <sstream> <string> <string_view> <utility> <variant> <vector>)
  endif()
endfunction()

# Compiles the sources of `target` together that stand in one folder. Those with flags or definitions of their own stay alone.
function(isomer_compile_together target)
  if(NOT ISOMER_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # It takes a source that is included for a header, in which anonymous namespaces would differ from file to file.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  # These are one thing a file, and each calls its parts the same. So do claims, of which those of one source go together.
  list(FILTER sources EXCLUDE REGEX "/(foreign|tasks|generated)/")
  foreach(file IN LISTS sources)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER "${folder}" id)
    if(file MATCHES "/claims/([a-z]+)[^/]*$")
      string(APPEND id _${CMAKE_MATCH_1})
    endif()
    list(APPEND files_${id} ${file})
    list(LENGTH files_${id} count)
    math(EXPR number "(${count} - 1) / ${ISOMER_TOGETHER}")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${id}_${number})
  endforeach()
endfunction()

# The plain sources as objects of `target`, which knows its definitions and folders already.
function(isomer_plain_objects target)
  set(objects ${target}_plain_objects)
  add_library(${objects} OBJECT ${ARGN})
  target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_compile_definitions(${objects} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  target_link_libraries(${objects} PRIVATE isomer_flags isomer_plain)
  isomer_precompile(${objects})
  isomer_compile_together(${objects})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
endfunction()
