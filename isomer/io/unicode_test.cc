#include "isomer/io/unicode.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

TEST(Unicode, ReplacesWhatIsNotUtf8LikePython) {
  // bytes.decode(errors="replace")
  EXPECT_EQ(valid_utf8("aé中🙂"), "aé中🙂");
  EXPECT_EQ(valid_utf8("\xff\xfe"), "\ufffd\ufffd");
  EXPECT_EQ(valid_utf8("\xe2\x82|"), "\ufffd|") << "what could have begun one character is one";
  EXPECT_EQ(valid_utf8("\xf0\x9f\x99"), "\ufffd");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd") << "a surrogate";
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\ufffd\ufffd") << "overlong";
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd") << "beyond U+10FFFF";
  EXPECT_EQ(valid_utf8("\xc3"), "\ufffd");
}

TEST(Unicode, HasNormalForms) {
  EXPECT_EQ(normal_form("e\u0301", NormalForm::nfc), "é");
  EXPECT_EQ(normal_form("é", NormalForm::nfd), "e\u0301");
  EXPECT_EQ(normal_form("ﬁ①", NormalForm::nfkc), "fi1");
  EXPECT_EQ(normal_form("ﬁ", NormalForm::nfc), "ﬁ");
  EXPECT_EQ(normal_form("a\u0307\u0323", NormalForm::nfd), "a\u0323\u0307") << "marks in their order";
  EXPECT_EQ(normal_form("각", NormalForm::nfkd), "\u1100\u1161\u11a8");
  EXPECT_EQ(normal_form("\u1100\u1161\u11a8", NormalForm::nfc), "각");
  // Quadratic work on so many marks would take minutes.
  std::string marks = "a";
  for (int i = 0; i < 300000; ++i) marks += i % 2 == 0 ? "\u0307" : "\u0323";
  EXPECT_EQ(normal_form(marks, NormalForm::nfd).size(), marks.size());
}

TEST(Unicode, KnowsCharacters) {
  std::string lower;
  for (const char32_t c : U"AÉΣİẞ1") append_lower_case(lower, c);
  EXPECT_EQ(lower.substr(0, lower.size() - 1), "aéσi\u0307ß1");
  EXPECT_TRUE(is_white_space(0x3000) && is_white_space('\n') && is_white_space(0x85) && !is_white_space(0x200b));
  EXPECT_TRUE(is_punctuation(U'¿') && !is_punctuation(U'$') && !is_punctuation(U'a'));
  EXPECT_TRUE(is_mark(0x301) && is_mark(0x903) && is_nonspacing_mark(0x301) && !is_nonspacing_mark(0x903));
  EXPECT_TRUE(is_numeric(U'½') && is_numeric(U'٣') && !is_numeric(U'a'));
  EXPECT_TRUE(is_control(0x200b) && is_control(0xe000) && !is_control(U'a') && !is_control(0x378)) << "not what is not assigned";
  EXPECT_TRUE(is_word(U'é') && is_word(U'_') && is_word(U'Ⅷ') && is_word(0x200d) && !is_word(U'½') && !is_word(U'-'));
}

}  // namespace
}  // namespace isomer
