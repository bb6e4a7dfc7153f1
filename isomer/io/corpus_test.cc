#include "isomer/io/corpus.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "isomer/io/text.h"
#include "isomer/io/utf8.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {
using Rows = std::vector<std::vector<std::string>>;
using tests::error_of;

const std::vector<std::string> kFields{"text", "label"};

Rows records(std::string_view text, const std::string& name) { return parse_records(text, name, kFields); }
std::string problem(std::string_view text, const std::string& name) {
  return error_of([&] { (void)records(text, name); });
}

TEST(Records, OfLinesOfJson) {
  EXPECT_EQ(records("{\"label\": 3, \"text\": \"a\\nµ\", \"more\": [1]}\n\n{\"text\":\"b\",\"label\":true}\r\n", "a.jsonl"),
            (Rows{{"a\nµ", "3"}, {"b", "true"}}));
  EXPECT_EQ(records("\xef\xbb\xbf{\"label\": -0.5, \"text\": \"\"}", "a.ndjson"), (Rows{{"", "-0.5"}}));
  EXPECT_TRUE(problem("{\"text\": \"a\", \"label\": \"b\"}\n{\"text\": ", "a.jsonl")
                  .starts_with("a.jsonl:2: expected JSON, got a parse error"))
      << problem("{\"text\": ", "a.jsonl");
  EXPECT_EQ(problem("\n[1]", "a.jsonl"), "a.jsonl:2: expected an object, got [1]");
  EXPECT_EQ(problem("{\"text\": \"a\", \"class\": 1}", "a.jsonl"),
            "a.jsonl:1: expected a field label, got none; there are text, class");
  EXPECT_EQ(problem("{\"text\": null, \"label\": 1}", "a.jsonl"), "a.jsonl:1: expected text in the field text, got null");
  EXPECT_EQ(problem("{\"text\": [\"a\"], \"label\": 1}", "a.jsonl"), "a.jsonl:1: expected text in the field text, got [\"a\"]");
}

TEST(Records, OfRowsBelowNames) {
  EXPECT_EQ(records("id,label,text\r\n1,x,\"a, \"\"b\"\"\nc\"\r\n\r\n2,,d\r\n", "a.csv"),
            (Rows{{"a, \"b\"\nc", "x"}, {"d", ""}}));
  EXPECT_EQ(records("text\tlabel\na b\tc", "a.tsv"), (Rows{{"a b", "c"}}));
  EXPECT_EQ(records("text,label\n\"\",\"\"\n,x", "a.csv"), (Rows{{"", ""}, {"", "x"}}));
  EXPECT_EQ(problem("text,class\na,b", "a.csv"), "a.csv:1: expected a field label, got none; there are text, class");
  // Lines are those of the file, also where a value has several.
  EXPECT_EQ(problem("text,label\n\"a\nb\",c\nd\n", "a.csv"), "a.csv:4: expected 2 values, got 1");
  EXPECT_EQ(problem("text,label\na,b,c\n", "a.csv"), "a.csv:2: expected 2 values, got 3");
  EXPECT_EQ(problem("text,label\na,\"b\n", "a.csv"), "a.csv:2: expected a quote at the end of a value, got none");
  EXPECT_EQ(problem("text,label\n\"a\"b,c\n", "a.csv"), "a.csv:2: expected a separator behind a quoted value, got b");
}

TEST(Records, SayWhatIsNotThere) {
  EXPECT_EQ(problem("a,b", "a.txt"), "a.txt: expected records in a file .jsonl, .csv or .tsv, got another");
  for (const char* name : {"a.csv", "a.tsv", "a.jsonl", "a.csv.gz"})
    for (const char* text : {"", " \n", "\xef\xbb\xbf"})
      EXPECT_EQ(problem(text, name), std::string(name) + ": expected records, got none");
  EXPECT_EQ(problem("text,label\n", "a.csv"), "a.csv: expected records, got none");
  for (const char* bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80"}) {
    EXPECT_TRUE(problem("text,label\n\na,b" + std::string(bad), "a.csv").starts_with("a.csv:3: expected UTF-8, got the byte "))
        << problem("text,label\n\na,b" + std::string(bad), "a.csv");
  }
}

TEST(NamedRecords, HaveTheFieldsOfTheFirst) {
  using Row = std::vector<std::string>;
  const NamedRecords rows = parse_all_records("\xef\xbb\xbfid,\"a, b\"\n1,2\n", "a.csv");
  EXPECT_EQ(rows.names, (Row{"id", "a, b"}));
  EXPECT_EQ(rows.rows, (std::vector<Row>{{"1", "2"}}));
  EXPECT_EQ(parse_all_records("x\ty\n\t2\n", "a.tsv").rows, (std::vector<Row>{{"", "2"}}));
  const NamedRecords lines = parse_all_records("\n{\"y\": 1, \"x\": null}\n{\"x\": \"b\"}\n{}\n", "a.jsonl");
  EXPECT_EQ(lines.names, (Row{"y", "x"}));
  EXPECT_EQ(lines.rows, (std::vector<Row>{{"1", ""}, {"", "b"}, {"", ""}}));
}

TEST(NamedRecords, SayWhatIsWrong) {
  const auto problem = [](const char* text, const char* name) { return error_of([&] { (void)parse_all_records(text, name); }); };
  EXPECT_EQ(problem("a", "a.txt"), "a.txt: expected records in a file .jsonl, .csv or .tsv, got another");
  EXPECT_EQ(problem("a,b\n", "a.csv"), "a.csv: expected records, got none");
  EXPECT_EQ(problem("a,b\n1,2,3\n", "a.csv"), "a.csv:2: expected 2 values, got 3");
  EXPECT_EQ(problem("a,b,a\n1,2,3\n", "a.csv"), "a.csv: expected fields of different names, got two of the name a");
  EXPECT_EQ(problem("[1]\n", "a.jsonl"), "a.jsonl:1: expected an object, got [1]");
  EXPECT_EQ(problem("{\"a\": 1}\n{\"b\": 1}\n", "a.jsonl"), "a.jsonl:2: expected fields of the first record, which are a, got b");
  EXPECT_EQ(problem("{\"a\": [1]}\n", "a.jsonl"), "a.jsonl:1: expected text in the field a, got [1]");
  EXPECT_EQ(problem("a\n\xff\n", "a.csv"), "a.csv:2: expected UTF-8, got the byte 255");
}

TEST(Documents, AreFilesOrFields) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path;
  EXPECT_EQ(error_of([&] { (void)read_documents(path, ""); }), "text: expected files in " + path + ", got none");
  write_text(path + "/b.txt", "two");
  write_text(path + "/a.txt", "one\xff");
  write_text(path + "/.c", "hidden");
  std::filesystem::create_symlink("itself", path + "/itself");  // no file can be found behind it
  EXPECT_EQ(read_documents(path, ""), (std::vector<std::string>{"one\xff", "two"}));
  write_text(path + "/r.jsonl", "{\"body\": \"x\"}\n{\"body\": \"y\"}\n");
  EXPECT_EQ(read_documents(path + "/r.jsonl", "body"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(error_of([&] { (void)read_documents(path + "/none.csv", "a"); }),
            "cannot read " + path + "/none.csv: No such file or directory");
}

TEST(Utf8, HasTheClassesOfUnicode) {
  using enum CharacterClass;
  for (const auto& [text, kind, bytes] : {std::tuple{"a", letter, 1},
                                          {"é", letter, 2},
                                          {"中", letter, 3},
                                          {"𝔸", letter, 4},
                                          {"7", number, 1},
                                          {"½", number, 2},
                                          {"Ⅷ", number, 3},
                                          {" ", space, 1},
                                          {"\n", space, 1},
                                          {"\xc2\x85", space, 2},
                                          {"\xe3\x80\x80", space, 3},
                                          {"_", other, 1},
                                          {"\xcc\x81", other, 2},
                                          {"\xe2\x80\x8b", other, 3},
                                          {"😀", other, 4}}) {
    const Utf8 c = first_character(text);
    EXPECT_TRUE(c.kind == kind && c.bytes == std::size_t(bytes) && c.valid) << text;
  }
  EXPECT_FALSE(first_character("\x80").valid);
  EXPECT_EQ(first_character("\xe4\xb8").bytes, 1U);
  EXPECT_EQ(first_not_utf8("aé\xff"), 3U);
  EXPECT_EQ(first_not_utf8("aé"), std::string_view::npos);
}

}  // namespace
}  // namespace isomer
