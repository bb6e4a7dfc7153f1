// isomer bench --worker: one JSON request a line.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/testing.h"
#include "isomer/io/safetensors.h"

namespace isomer {
namespace {

using nlohmann::json;

struct Worker : Cli {
  [[nodiscard]] std::vector<json> answers_to(const std::vector<std::string>& requests) const {
    {
      std::ofstream file(path("requests"));
      for (const std::string& request : requests) file << request << "\n";
    }
    const Result result = run("bench --worker <'" + path("requests") + "'");
    EXPECT_EQ(result.status, 0) << result.err;
    std::istringstream lines(result.out);
    std::vector<json> answers;
    for (std::string line; std::getline(lines, line);) answers.push_back(json::parse(line));
    return answers;
  }
};

TEST_F(Worker, TimesLaws) {
  const std::string time =
      R"({"op":"time","case":{"subject":"attention","variant":"causal","direction":"forward","B":1,"T":32,"H":1,"K":8,"V":8,)"
      R"("S":32,"window":4,"threads":2},"repeat":)";
  const std::vector<json> answers = answers_to(
      {time + "3}", time + "2}", R"({"op":"peak","threads":1})", R"({"op":"dance"})", "not json", R"({"op":"time","repeat":1})",
       R"({"op":"time","case":{"subject":"atention","variant":"causal","direction":"forward","B":1,"T":1,)"
       R"("H":1,"K":1,"V":1,"threads":1},"repeat":1})",
       R"({"op":"time","case":{"subject":"delta","variant":"plain","direction":"forward","B":1,"T":4,)"
       R"("H":1,"K":2,"V":2,"chunk":-1,"threads":1},"repeat":1})"});
  ASSERT_EQ(answers.size(), 8u);
  EXPECT_EQ(answers[0].at("seconds").size(), 3u);
  EXPECT_EQ(answers[1].at("seconds").size(), 2u);
  EXPECT_GT(answers[0].at("flops").get<double>(), 0);
  EXPECT_GT(answers[2].at("gflops").get<double>(), 0);
  EXPECT_EQ(answers[3].at("skip"), "unknown op dance");
  for (std::size_t i : {4, 5}) EXPECT_TRUE(answers[i].at("skip").is_string());
  EXPECT_EQ(answers[6].at("skip"), "unknown law atention, did you mean attention?");
  EXPECT_EQ(answers[7].at("skip"), "delta: expected chunk >= 0, got -1");
}

TEST_F(Worker, TrainsAndStreamsModels) {
  const std::string saved = path("model.safetensors");
  const auto train = [](const std::string& preset, const std::string& sizes) {
    return R"({"op":"train","repeat":3,"case":{"layers":2,"width":32,"vocabulary":50,"threads":2,"preset":")" + preset + "\"," +
           sizes + "}";
  };
  const std::string generate =
      R"({"op":"generate","case":{"preset":"softmax","prompt":5,"weights":"float32","layers":2,"width":32,"vocabulary":50,"threads":2})";
  const std::vector<json> answers =
      answers_to({train("gla", R"("B":2,"T":24)") + R"(,"save":")" + saved + "\"}", train("gla", R"("B":2,"T":24)") + "}",
                  generate + R"(,"repeat":4})", generate + R"(,"repeat":2})", R"({"op":"read","threads":1,"bytes":1000})",
                  train("glaa", R"("B":1,"T":1)") + "}", train("gla", R"("B":0,"T":1)") + "}"});
  ASSERT_EQ(answers.size(), 7u);
  EXPECT_EQ(answers[0].at("seconds").size(), 3u);
  // The steps of the second request go on where those of the first ended.
  std::vector<double> losses = answers[0].at("losses");
  losses.insert(losses.end(), answers[1].at("losses").begin(), answers[1].at("losses").end());
  EXPECT_NEAR(losses[0], std::log(50.0), 0.3);
  EXPECT_TRUE(std::is_sorted(losses.rbegin(), losses.rend()));
  EXPECT_GT(answers[0].at("law_flops_per_token").get<double>(), 0);
  EXPECT_GT(answers[0].at("peak_mib").get<long>(), 0);
  Index parameters = 0;
  const Tensors tensors = read_safetensors(saved);
  for (const auto& [name, tensor] : tensors) parameters += floating(tensor.type()) ? tensor.size() : 0;
  EXPECT_EQ(answers[0].at("parameters").get<Index>(), parameters);
  EXPECT_EQ(tensors.at("tokens").size(), 48);
  EXPECT_EQ(tensors.at("labels").size(), 48);
  // Tokens start again after the prompt.
  EXPECT_EQ(answers[2].at("tokens").at(0), answers[3].at("tokens").at(0));
  EXPECT_EQ(answers[2].at("tokens").at(1), answers[3].at("tokens").at(1));
  EXPECT_EQ(answers[2].at("state_bytes").get<Index>(), 9 * 2 * 2 * 32 * 4);
  EXPECT_GT(answers[4].at("gb_per_s").get<double>(), 0);
  EXPECT_EQ(answers[5].at("skip"), "unknown preset glaa, did you mean gla?");
  EXPECT_EQ(answers[6].at("skip"), "B: expected a number >= 1, got 0");
}

}  // namespace
}  // namespace isomer
