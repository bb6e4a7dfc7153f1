#include "isomer/laws/with_law_isa.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

TEST(WithLawIsa, FloatHasEveryInstructionSetAndDoubleThoseUpToAvx2) {
  const auto taken = []<Isa I>() { return I; };
  for (const Isa isa : kIsas) {
    if (!supported(isa)) continue;
    EXPECT_EQ(with_law_isa<float>(isa, taken), isa);
    EXPECT_EQ(with_law_isa<double>(isa, taken), isa == Isa::avx512 ? Isa::avx2 : isa);
  }
}

}  // namespace
}  // namespace isomer
