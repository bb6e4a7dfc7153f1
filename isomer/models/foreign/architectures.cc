#include "isomer/models/foreign/architecture.h"

namespace isomer {

namespace foreign {
extern const Architecture bert, falcon_h1, fla, gemma3, gpt2, kimi_linear, llama, mamba, mamba2, olmo_hybrid, performer,
    qwen3_next, recurrent_gemma, rwkv7, tabpfn, vit, whisper, xlstm;
}

const std::vector<const Architecture*>& architectures() {
  static const std::vector<const Architecture*> kAll{&foreign::bert,
                                                     &foreign::falcon_h1,
                                                     &foreign::fla,
                                                     &foreign::gemma3,
                                                     &foreign::gpt2,
                                                     &foreign::kimi_linear,
                                                     &foreign::llama,
                                                     &foreign::mamba,
                                                     &foreign::mamba2,
                                                     &foreign::olmo_hybrid,
                                                     &foreign::performer,
                                                     &foreign::qwen3_next,
                                                     &foreign::recurrent_gemma,
                                                     &foreign::rwkv7,
                                                     &foreign::tabpfn,
                                                     &foreign::vit,
                                                     &foreign::whisper,
                                                     &foreign::xlstm};
  return kAll;
}

}  // namespace isomer
