# Flags of the translation units of one instruction set, chosen by the end of their name.
# Highway picks its AVX2 target only when AES and PCLMUL are enabled too; vec_avx2.h asserts that it did.
set(ISOMER_AVX2_FLAGS -mavx2 -mfma -mbmi -mbmi2 -mf16c -maes -mpclmul)
set(ISOMER_AVX512_FLAGS ${ISOMER_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl)

# Kernels are most of the compile time under a sanitizer, and the instantiations are the same text: the address sanitizer runs the
# vectors of AVX2 with their masked tails, the thread sanitizer the scalar ones, since tasks are cut the same way on every
# instruction set; both leave AVX-512 out.
set(ISOMER_SCALAR_FLAGS)
if(ISOMER_SANITIZE STREQUAL "address,undefined")
  # Checks as calls compile in half the time of checks in place.
  list(APPEND ISOMER_AVX2_FLAGS -fno-sanitize=undefined --param asan-instrumentation-with-call-threshold=0)
  list(APPEND ISOMER_SCALAR_FLAGS -O0 -fno-sanitize=address,undefined)
elseif(ISOMER_SANITIZE STREQUAL "thread")
  list(APPEND ISOMER_AVX2_FLAGS -O0 -fno-sanitize=thread)
endif()

# For what is not arithmetic (tables, tests, the program): most of the compile time would go into optimising it.
set(ISOMER_PLAIN_FLAGS -O1)
if(ISOMER_SANITIZE)
  set(ISOMER_PLAIN_FLAGS -O0 -fno-sanitize=undefined)
endif()

function(isomer_isa_flags)
  foreach(file IN LISTS ARGN)
    if(file MATCHES "_avx2\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ISOMER_AVX2_FLAGS}")
    elseif(file MATCHES "_avx512\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ISOMER_AVX512_FLAGS}")
    elseif(file MATCHES "_scalar\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ISOMER_SCALAR_FLAGS}")
    elseif(file MATCHES "_(law|bench)\\.cc$" OR file MATCHES "/isomer/(mixers|bench)/"
           OR file MATCHES "/(json|table|metrics|sweep|sweep_rows|run_summary|evaluation|plan|child_process)\\.cc$"
           OR (ISOMER_SANITIZE AND file MATCHES "/isomer/(autograd|nn|models|tasks|train)/"))
      # Tables of names and sizes, specs, rows, and, for the sanitizers, all that only calls kernels.
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ISOMER_PLAIN_FLAGS}")
    elseif(file MATCHES "_reference\\.cc$")
      # The reference is the plain equation, without fused operations.
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
    endif()
  endforeach()
endfunction()
