#include "isomer/io/table.h"

#include <gtest/gtest.h>

#include "isomer/base/context.h"

namespace isomer {
namespace {

struct Score {
  std::string name;
  double value = 0;
};
Json to_json(const Score& row) { return Json::object({{"name", row.name}, {"value", row.value}}); }
Cells cells_of(const Score& row) { return {{"name", row.name}, {"µ", row.value == 0 ? "0" : "12.5"}}; }

TEST(Table, TextIsAlignedAndNumbersStandToTheRight) {
  EXPECT_EQ(table_text(std::vector<Score>{{"gla", 0}, {"softmax", 1}}), "name        µ\ngla         0\nsoftmax  12.5\n");
}

TEST(Table, ABlankCellLeavesNumbersToTheRight) {
  EXPECT_EQ(aligned({{"run", "loss"}, {"a", "12.5"}, {"b", ""}, {"c", "3"}}), "run  loss\na    12.5\nb\nc       3\n");
  EXPECT_EQ(aligned({{"run", "x"}, {"a", ""}, {"b", ""}}), "run  x\na\nb\n");
  EXPECT_EQ(aligned({{"x", "loss"}, {"a", "12"}, {"b", "none"}}), "x  loss\na  12\nb  none\n");
}

TEST(Table, HeadingsStandAboveNoRows) { EXPECT_EQ(table_text(std::vector<Score>{}), "name  µ\n"); }

TEST(Table, JsonHasSchemaMachineAndRows) {
  const Context context(2);
  const Json json = table_json(machine_of(context), rows_json(std::vector<Score>{{"gla", 0.5}}));
  EXPECT_EQ(json.at("schema").integer(), 1);
  EXPECT_EQ(json.at("machine").at("threads").integer(), 2);
  EXPECT_EQ(json.at("machine").at("isa").text(), name_of(context.isa()));
  for (const char* key : {"cpu", "compiler", "version"}) EXPECT_FALSE(json.at("machine").at(key).text().empty()) << key;
  EXPECT_EQ(json.at("rows").dump(), R"([{"name":"gla","value":0.5}])");
}

TEST(Table, CsvHasAColumnForEveryMember) {
  Json rows = Json::array();
  rows.push(Json::object({{"run", "a, b"}, {"set", Json::object({{"lr", 0.1}, {"mixer", "gla"}})}, {"value", nullptr}}));
  rows.push(Json::object({{"run", "say \"x\""}, {"shape", std::vector<int>{1, 2}}}));
  EXPECT_EQ(table_csv(rows), "run,set.lr,set.mixer,value,shape\n\"a, b\",0.1,gla,,\n\"say \"\"x\"\"\",,,,\"[1,2]\"\n");
}

}  // namespace
}  // namespace isomer
