# Flags of the translation units of one instruction set, chosen by the end of their name.
# Highway picks its AVX2 target only when AES and PCLMUL are enabled too; vec_avx2.h asserts that it did.
set(ISOMER_AVX2_FLAGS -mavx2 -mfma -mbmi -mbmi2 -mf16c -maes -mpclmul)

function(isomer_isa_flags)
  foreach(file IN LISTS ARGN)
    if(file MATCHES "_avx2\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ISOMER_AVX2_FLAGS}")
    elseif(file MATCHES "_reference\\.cc$")
      # The reference is the plain equation, without fused operations.
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
    endif()
  endforeach()
endfunction()
