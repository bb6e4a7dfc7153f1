# The same tests under the sanitizers, as part of the suite: a first test builds them, the others run them on fewer sizes.
# `ctest -LE sanitize` leaves them out. The thread sanitizer runs the tests that are about threads.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)

function(isomer_sanitized prefix preset folder environment)
  set(binaries ${ARGN})
  list(TRANSFORM binaries PREPEND test_ OUTPUT_VARIABLE targets)
  set(configure ${CMAKE_COMMAND} --preset ${preset} -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
      -DISOMER_SANITIZE_ALL=${ISOMER_SANITIZE_ALL})
  set(build ${CMAKE_COMMAND} --build ${PROJECT_SOURCE_DIR}/${folder} -j ${cores} -t ${targets})
  string(JOIN " " configure ${configure})
  string(JOIN " " build ${build})
  add_test(NAME ${prefix}.build COMMAND bash -c "${configure} && ${build}" WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${prefix}.build PROPERTIES FIXTURES_SETUP ${prefix} LABELS sanitize TIMEOUT 1800 PROCESSORS ${cores})
  foreach(id IN LISTS binaries)
    add_test(NAME ${prefix}.${id} COMMAND ${PROJECT_SOURCE_DIR}/${folder}/test_${id})
    set_tests_properties(${prefix}.${id} PROPERTIES FIXTURES_REQUIRED ${prefix} LABELS sanitize
                         ENVIRONMENT "ISOMER_POISON=1;ISOMER_TEST_QUICK=1;${environment}")
    if(id STREQUAL "isomer_laws")
      # The longest by far: it starts first.
      set_tests_properties(${prefix}.${id} PROPERTIES COST 1000)
    endif()
  endforeach()
endfunction()

# The tests of the program run the released one. Laws are covered by the property suite and ops by autograd; the rest takes more
# minutes than a run of all tests may have, and belongs to `make sanitize`.
list(REMOVE_ITEM folders cli)
if(NOT ISOMER_SANITIZE_ALL)
  list(FILTER folders EXCLUDE REGEX "^isomer_(mixers|nn|models|bench|explore|study|tasks|train)")
  list(REMOVE_ITEM folders isomer_kernels_rotary isomer_laws_scalar_decay isomer_laws_channel_decay isomer_laws_delta tests_examples
       tests_sixth_law)
endif()
isomer_sanitized(asan asan-ubsan build-asan "GTEST_FILTER=*" ${folders})

# The fuzzers for two seconds each, where Clang is. They take from the library what they do not read bytes with.
find_program(ISOMER_CLANG clang++-14)
if(ISOMER_CLANG)
  set(configure "${CMAKE_COMMAND} --preset fuzz -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER} -DISOMER_FUZZ_LIBRARY=$<TARGET_FILE:isomer>")
  add_test(NAME fuzz COMMAND bash -c "${configure} && ${CMAKE_COMMAND} --build build-fuzz -j ${cores} && tools/fuzz build-fuzz 2"
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(fuzz PROPERTIES LABELS sanitize TIMEOUT 900 PROCESSORS ${cores})
endif()

set(threaded isomer_base)
if(ISOMER_SANITIZE_ALL)
  list(APPEND threaded isomer_laws isomer_models)
endif()
isomer_sanitized(tsan tsan build-tsan "GTEST_FILTER=*Thread*:Context.*:Workspace.*;ISOMER_ISA=scalar" ${threaded})
