#include "isomer/io/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "isomer/base/error.h"
#include "tests/error_of.h"

namespace isomer {
namespace {
using tests::error_of;

TEST(Json, WritesWhatItReads) {
  const std::string text = R"({"b":[1,-2,0.5,1e+30,null,true],"a":{"x":"µ\n"},"seed":18446744073709551615,"whole":2.0})";
  EXPECT_EQ(Json::parse(text, "text").dump(), text);
}

TEST(Json, MembersKeepTheirOrderAndAreChangedInPlace) {
  Json row = Json::object({{"step", 3}, {"loss", 0.25}});
  row.set("task", "mqar");
  row.set("step", std::optional<int>());
  row.set("shape", std::vector<std::ptrdiff_t>{2, 3});
  Json list = Json::array();
  list.push(true);
  row.set("list", list);
  EXPECT_EQ(row.dump(), R"({"step":null,"loss":0.25,"task":"mqar","shape":[2,3],"list":[true]})");
  EXPECT_EQ(row.find("nothing"), nullptr);
  EXPECT_EQ(Json::object({{"a", 1}}).dump(1), "{\n \"a\": 1\n}");
}

TEST(Json, WhatIsNotFiniteIsNull) {
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_TRUE(std::isnan(Json::parse("null", "text").number()));
}

TEST(Json, BytesThatAreNoTextAreReplaced) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xEF\xBF\xBD\""); }

TEST(Json, AccessNamesWhatItExpected) {
  const Json row = Json::parse(R"({"a":1,"b":"x","c":18446744073709551615,"d":0.5})", "row");
  EXPECT_EQ(row.at("a").integer(), 1);
  EXPECT_EQ(row.at("a").number(), 1.0);
  EXPECT_EQ(row.at("b").text(), "x");
  EXPECT_EQ(error_of([&] { (void)row.at("e"); }), "expected a member e, got none");
  EXPECT_EQ(error_of([&] { (void)row.at("b").number(); }), "expected a number, got a string");
  EXPECT_EQ(error_of([&] { (void)row.at("d").integer(); }), "expected a whole number, got a number");
  EXPECT_EQ(error_of([&] { (void)row.at("c").integer(); }), "expected a whole number below 2^63, got 18446744073709551615");
  EXPECT_EQ(error_of([&] { (void)row.at("a").text(); }), "expected a string, got a number");
  EXPECT_EQ(error_of([&] { (void)row.at("a").items(); }), "expected an array, got a number");
  EXPECT_EQ(error_of([&] { (void)row.at("a").find("x"); }), "expected an object, got a number");
  EXPECT_EQ(error_of([&] { (void)row.boolean(); }), "expected a boolean, got an object");
}

TEST(Json, OfMembersWithOneNameTheLastCounts) {
  EXPECT_EQ(Json::parse(R"({"a":1,"b":2,"a":[3],"c":{"a":4,"a":5},"a":6})", "text").dump(), R"({"a":6,"b":2,"c":{"a":5}})");
  EXPECT_EQ(Json::parse(" 7 ", "text").integer(), 7);
}

TEST(Json, ReadsObjectsOfManyMembersAtOnce) {
  // Quadratic work on so many would take minutes.
  std::string text = "{\"first\":0";
  for (int i = 0; i < 300000; ++i) text += ",\"member " + std::to_string(i) + "\":" + std::to_string(i);
  EXPECT_EQ(Json::parse(text + "}", "text").members().back().second.integer(), 299999);
}

TEST(Json, TextThatIsNoJsonIsAnError) {
  EXPECT_EQ(error_of([] { (void)Json::parse("{\"a\":", "FILE"); }).substr(0, 60),
            std::string("FILE: expected JSON, got a parse error at line 1, column 6: ").substr(0, 60));
  EXPECT_FALSE(Json::try_parse("{").has_value());
  EXPECT_TRUE(Json::try_parse("{}").has_value());
  EXPECT_EQ(error_of([] { (void)Json::parse(std::string(1000, '['), "FILE"); }),
            "FILE: expected JSON, got values within values, more than 200 deep");
}

}  // namespace
}  // namespace isomer
