# x_isa.cc is compiled once for each instruction set: an object library each, with its flags and ISOMER_TARGET_ISA, the number of
# the enumerator of Isa, which isomer/simd/target.h makes into the constant kTarget.
# Highway picks its AVX2 target only when AES and PCLMUL are enabled too; vec_avx2.h asserts that it did.
set(ISOMER_AVX2_FLAGS -mavx2 -mfma -mbmi -mbmi2 -mf16c -maes -mpclmul)
set(ISOMER_AVX512_FLAGS ${ISOMER_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl)

# Kernels are most of the compile time under a sanitizer, and the instantiations are the same text: the address sanitizer runs the
# vectors of AVX2 with their masked tails, the thread sanitizer the scalar ones, since tasks are cut the same way on every
# instruction set; both leave AVX-512 out.
# One lane at a time there is nothing that more optimisation would find.
set(ISOMER_SCALAR_FLAGS -O2)
if(ISOMER_SANITIZE STREQUAL "address,undefined")
  # Checks as calls compile in half the time of checks in place.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(as_calls "SHELL:--param asan-instrumentation-with-call-threshold=0")
  else()
    set(as_calls "SHELL:-mllvm -asan-instrumentation-with-call-threshold=0")
  endif()
  list(APPEND ISOMER_AVX2_FLAGS -fno-sanitize=undefined ${as_calls})
  set(ISOMER_SCALAR_FLAGS -O0 -fno-sanitize=address,undefined)
elseif(ISOMER_SANITIZE STREQUAL "thread")
  set(ISOMER_SCALAR_FLAGS)
  list(APPEND ISOMER_AVX2_FLAGS -O0 -fno-sanitize=thread)
endif()

# For what is not arithmetic (tables, tests, the program): most of the compile time would go into optimising it.
set(ISOMER_PLAIN_FLAGS -O1)
if(ISOMER_SANITIZE)
  set(ISOMER_PLAIN_FLAGS -O0 -fno-sanitize=undefined)
endif()

function(isomer_isa_objects target)
  set(isas scalar avx2 avx512)
  set(numbers 0 1 2)
  set(objects)
  foreach(isa number IN ZIP_LISTS isas numbers)
    if(ISOMER_SANITIZE AND isa STREQUAL "avx512")
      continue()
    endif()
    string(TOUPPER ISOMER_${isa}_FLAGS flags)
    # Flags that follow those of isomer_flags, to take some of them back.
    add_library(isomer_flags_${isa} INTERFACE)
    target_compile_options(isomer_flags_${isa} INTERFACE ${${flags}})
    add_library(${target}_${isa} OBJECT ${ARGN})
    target_include_directories(${target}_${isa} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${target}_${isa} PRIVATE ISOMER_TARGET_ISA=${number})
    target_link_libraries(${target}_${isa} PRIVATE isomer_flags isomer_flags_${isa})
    if(ISOMER_PRECOMPILE AND NOT isa STREQUAL "scalar")
      target_precompile_headers(${target}_${isa} PRIVATE <hwy/cache_control.h> <hwy/highway.h>)
      # GCC 12 forgets in precompiled headers that its own intrinsics may be warned about; the other sets are the same text.
      target_compile_options(isomer_flags_${isa} INTERFACE $<$<STREQUAL:${isa},avx512>:-Wno-uninitialized>)
    endif()
    list(APPEND objects $<TARGET_OBJECTS:${target}_${isa}>)
  endforeach()
  target_sources(${target} PRIVATE ${objects})
  set(ISOMER_ISA_OBJECTS ${objects} PARENT_SCOPE)
endfunction()
