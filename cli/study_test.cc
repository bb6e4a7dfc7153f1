// study: what it lists, runs, keeps and refuses.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/testing.h"
#include "isomer/io/file_lock.h"

namespace isomer {
namespace {

using nlohmann::json;

TEST_F(Cli, StudyListsItsClaims) {
  const Result all = run("study --list --json");
  ASSERT_EQ(all.status, 0) << all.err;
  const json rows = json::parse(all.out).at("rows");
  EXPECT_GT(rows.size(), 20u);
  for (const json& row : rows)
    for (const char* key : {"id", "source", "statement", "rule"}) EXPECT_FALSE(row.at(key).get<std::string>().empty()) << row;
  const Result one = run("study inline --list");
  EXPECT_NE(one.out.find("inline.confusion"), std::string::npos);
  EXPECT_EQ(one.out.find("metala"), std::string::npos);
}

TEST_F(Cli, StudyDecidesClaimsAndKeepsWhatItFound) {
  const Result first = run("study metala.overwrite selective-rope.leakage --out " + path("a"));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.out.find("1 fails, 1 holds"), std::string::npos) << first.out;
  const json result = json::parse(text(folder / "a" / "metala.overwrite.json"));
  EXPECT_EQ(result.at("schema"), 1);
  EXPECT_EQ(result.at("verdict"), "holds");
  for (const char* key : {"id", "source", "statement", "rule", "why", "measured", "published", "figure", "mode", "seeds", "cells",
                          "command", "machine", "version", "seconds"})
    EXPECT_TRUE(result.contains(key)) << key;
  const Result same = run("study --compare --out " + path("a") + " --kept " + path("a"));
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_NE(same.out.find("every verdict is the kept one"), std::string::npos);
  EXPECT_NE(same.out.find("2 claims are kept in " + path("a") + ": 1 fails, 1 holds"), std::string::npos) << same.out;
  EXPECT_NE(same.out.find("which took one core: metala 0 min, selective-rope 0 min\n"), std::string::npos) << same.out;
}

TEST_F(Cli, StudyOnAFullDiskSaysSoAndGoesOnLater) {
  const std::string claims = "study metala.overwrite selective-rope.leakage --jobs 1 --out " + path("a");
  const Result full = run(claims, "trap '' XFSZ; ulimit -f 1;");
  EXPECT_EQ(full.status, 1);
  EXPECT_TRUE(full.err.starts_with("isomer study: cannot write " + path("a"))) << full.err;
  EXPECT_EQ(std::ranges::count(full.err, '\n'), 1) << full.err;
  const Result later = run(claims);
  EXPECT_EQ(later.status, 0) << later.err;
  EXPECT_NE(later.out.find("1 fails, 1 holds"), std::string::npos);
}

TEST_F(Cli, StudyRefusesAFolderThatAnotherWrites) {
  fs::create_directory(folder / "a");
  std::ofstream(folder / "a" / ".lock").close();
  const std::optional<FileLock> lock = FileLock::take(folder / "a" / ".lock");
  ASSERT_TRUE(lock);
  const Result result = run("study metala.overwrite --out " + path("a"));
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err,
            "isomer study: " + path("a") + ": another study writes it; wait for it, or choose another folder with --out\n");
}

TEST_F(Cli, StudyAnswersWrongRequestsInOneLine) {
  expect_wrong("study inlin", "isomer study: unknown claim inlin, did you mean inline?");
  expect_wrong("study softmax-rnn.orders", "isomer study: softmax-rnn.orders has no quick setting: run it with --full");
  expect_wrong("study --seeds 0", "isomer study: --seeds: Value 0 not in range 1 to 1000");
  expect_wrong("study --compare --out /nowhere", "isomer study: cannot read /nowhere: No such file or directory");
  expect_wrong("study metala.overwrite --out /proc/a", "isomer study: cannot write /proc/a: No such file or directory");
  std::ofstream(path("b.json")) << "{}";
  expect_wrong("study --compare --out " + folder.string(),
               "isomer study: " + path("b.json") + ": results: expected an object with a schema");
}

}  // namespace
}  // namespace isomer
