// Tables: how files of them are read, what becomes of their columns, and that answers are the model's own.
#include "isomer/models/table_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "isomer/io/text.h"
#include "tests/error_of.h"
#include "tests/temporary_folder.h"

namespace isomer {
namespace {

using tests::error_of;

std::unique_ptr<LoadedModel> tiny() {
  return load_model((std::filesystem::path(ISOMER_SOURCE_DIR) / "tests/goldens/foreign/tabpfn").string());
}

class TableFiles : public ::testing::Test {
 protected:
  std::string file(const char* text, const char* name = "rows.csv") {
    const std::string path = (folder_.path / name).string();
    write_text(path, text);
    return path;
  }
  tests::TemporaryFolder folder_;
};

TEST_F(TableFiles, HaveNumbersInAllColumnsButThatOfTheLabel) {
  const TableRows rows = read_table(file("a,kind,b\n1,x,2.5\n-3,,\n"), "kind");
  EXPECT_EQ(rows.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(rows.labels, (std::vector<std::string>{"x", ""}));
  EXPECT_EQ(rows.rows[0], (std::vector<double>{1, 2.5}));
  EXPECT_EQ(rows.rows[1][0], -3);
  EXPECT_TRUE(std::isnan(rows.rows[1][1]));
  const TableRows lines = read_table(file("{\"b\": 1, \"a\": 7}\n", "rows.jsonl"), "kind", rows.columns);
  EXPECT_EQ(lines.rows[0], (std::vector<double>{7, 1}));
  EXPECT_EQ(lines.labels[0], "");
}

TEST_F(TableFiles, WhatIsNoNumberIsNamedByItsRow) {
  const std::string path = file("a,kind\n1,x\nred,y\n");
  EXPECT_EQ(error_of([&] { (void)read_table(path, "kind"); }),
            path + ": row 2: expected a number or nothing in the column a, got red");
  EXPECT_EQ(error_of([&] { (void)read_table(path, "kind", std::vector<std::string>{"c"}); }),
            path + ": expected a column c, got none");
}

TEST_F(TableFiles, HaveNothingWhereJsonHasNull) {
  const TableRows rows =
      read_table(file("{\"a\": 1, \"kind\": \"x\"}\n{\"a\": null, \"kind\": null}\n{}\n", "rows.jsonl"), "kind");
  EXPECT_EQ(rows.labels, (std::vector<std::string>{"x", "", ""}));
  EXPECT_EQ(rows.rows[0], std::vector<double>{1});
  EXPECT_TRUE(std::isnan(rows.rows[1][0]) && std::isnan(rows.rows[2][0]));
}

const TableRows kKnown{{"a", "same", "b"}, {{1, 4, 10}, {2, 4, 30}, {6, 4, 20}, {3, 4, 60}}, {"10", "9", "9", "10"}};

TEST(TableRows, AreStandardisedByThoseThatAreKnown) {
  const auto loaded = tiny();
  Context context(1);
  const std::vector<RowClass> found =
      classify_rows(loaded->model, kKnown, {kKnown.columns, {{2, 4, NAN}, {0, 7, 30}}, {"", ""}}, context);
  ASSERT_EQ(found.size(), 2U);
  // By hand: a has mean 3 and variance 14/3, b mean 30 and variance 1400/3; two columns of six.
  std::vector<float> inputs;
  const double a = std::sqrt(14.0 / 3) + 1e-6, b = std::sqrt(1400.0 / 3) + 1e-6;
  for (const auto& [x, y] : std::vector<std::pair<double, double>>{{1, 10}, {2, 30}, {6, 20}, {3, 60}, {2, 30}, {0, 30}})
    for (const double z : {(x - 3) / a * 3, (y - 30) / b * 3, 0.0, 0.0, 0.0, 0.0}) inputs.push_back(float(z));
  const std::vector<float> known{1, 0, 0, 1};  // 9 comes before 10
  Tape<float> tape(context, Record::no);
  const Var<float> logits = loaded->model.logits(tape, {.B = 1, .T = 6, .inputs = inputs, .known = known}).logits;
  for (const Index i : {0, 1}) {
    const double nine = logits.value(0, 4 + i, 0, 0), ten = logits.value(0, 4 + i, 0, 1);
    EXPECT_EQ(found[std::size_t(i)].label, nine > ten ? "9" : "10");
    EXPECT_NEAR(found[std::size_t(i)].probability, 1 / (1 + std::exp(-std::abs(nine - ten))), 1e-5);
  }
}

// Numbers and words have no common order: "10" < "1a" < "9" as words, 9 < 10 as numbers.
TEST(TableRows, HaveAsManyClassesAsTheyHaveLabels) {
  const auto loaded = tiny();
  Context context(1);
  for (const std::vector<std::string>& labels : {std::vector<std::string>{"10", "1a", "9", "10", "9", "1a"},
                                                 {"nan", "1", "2", "nan", "2", "1"},
                                                 {"inf", "1", "-1", "x", "1", "x"}}) {
    const TableRows known{{"a"}, {{1}, {2}, {3}, {4}, {5}, {6}}, labels};
    EXPECT_EQ(classify_rows(loaded->model, known, {known.columns, {{1}}, {""}}, context).size(), 1U);
  }
}

TEST(TableRows, SayWhatAModelCannotRead) {
  const auto loaded = tiny();
  Context context(1);
  const auto error = [&](const TableRows& known) {
    return error_of([&] { (void)classify_rows(loaded->model, known, {known.columns, {known.rows[0]}, {""}}, context); });
  };
  EXPECT_EQ(error({{"a"}, {{1}, {1}}, {"x", "y"}}),
            "table: expected a column that is not the same in all rows that are known, got none");
  EXPECT_EQ(error({{"a"}, {{1}, {2}}, {"x", ""}}), "table: expected the labels of all rows that are known");
  EXPECT_EQ(error({{"a"}, {{1}, {2}, {3}, {4}, {5}}, {"1", "2", "3", "4", "5"}}), "table: expected at most 4 classes, got 5");
  EXPECT_EQ(error({{"a", "b", "c", "d", "e", "f", "g"}, {{1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2, 2}}, {"x", "y"}}),
            "table: expected at most 6 columns that change, got 7");
  EXPECT_EQ(error({{"a"}, {{1.7e308}, {1.7e308}, {-1.7e308}}, {"x", "y", "x"}}),
            "table: expected numbers whose squares have a sum in the column a, got larger ones");
}

}  // namespace
}  // namespace isomer
