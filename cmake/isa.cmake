# Flags of the translation units of one instruction set, chosen by the end of their name.
# Highway picks its AVX2 target only when AES and PCLMUL are enabled too; vec_avx2.h asserts that it did.
set(ISOMER_AVX2_FLAGS -mavx2 -mfma -mbmi -mbmi2 -mf16c -maes -mpclmul)

# GCC needs minutes for an unrolled kernel under both sanitizers at once, and seconds under one. The instantiations are the same
# text, so one is checked for addresses and the other for undefined behaviour.
set(ISOMER_SCALAR_FLAGS)
if(ISOMER_SANITIZE STREQUAL "address,undefined")
  # Checks as calls compile in half the time of checks in place.
  list(APPEND ISOMER_AVX2_FLAGS -fno-sanitize=undefined --param asan-instrumentation-with-call-threshold=0)
  list(APPEND ISOMER_SCALAR_FLAGS -fno-sanitize=address)
endif()

function(isomer_isa_flags)
  foreach(file IN LISTS ARGN)
    if(file MATCHES "_avx2\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ISOMER_AVX2_FLAGS}")
    elseif(file MATCHES "_scalar\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ISOMER_SCALAR_FLAGS}")
    elseif(ISOMER_SANITIZE AND file MATCHES "_(law|bench|test)\\.cc$")
      # Tables of names and sizes, and the tests themselves: nothing to optimise, and most of the compile time under the sanitizers.
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-O0;-fno-sanitize=undefined")
    elseif(file MATCHES "_reference\\.cc$")
      # The reference is the plain equation, without fused operations.
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
    endif()
  endforeach()
endfunction()
