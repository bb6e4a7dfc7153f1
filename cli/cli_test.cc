// apply, check and bench.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/testing.h"
#include "isomer/io/safetensors.h"
#include "isomer/laws/check.h"
#include "isomer/laws/law.h"
#include "isomer/laws/random.h"

namespace isomer {
namespace {

using nlohmann::json;

TEST_F(Cli, HelpsWithAnExample) {
  for (const std::string command :
       {"", "apply ", "check ", "bench ", "list ", "show ", "tasks ", "train ", "sweep ", "eval ", "generate ", "logits ",
        "classify ", "tokenizer ", "convert ", "runs ", "study ", "completion "}) {
    const Result help = run(command + "--help");
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find("Example:\n  isomer "), std::string::npos) << command;
    EXPECT_EQ(help.err, "");
  }
  const std::string laws = run("apply --help").out;
  for (const char* tensors :
       {"inputs   q [B T Gq K], k [B S Gk K], v [B S Gv V]", "[log_decay [B T H] or [H]]", "outputs  o [B T H V]"})
    EXPECT_NE(laws.find(tensors), std::string::npos) << tensors << laws;
  EXPECT_TRUE(run("--version").out.starts_with("isomer "));
}

TEST_F(Cli, AnswersWrongRequestsInOneLine) {
  expect_wrong("", "isomer: expected a command (isomer --help lists them), got none");
  expect_wrong("chekc", "isomer: unknown command chekc, did you mean check?");
  expect_wrong("--versoin", "isomer: unknown option --versoin, did you mean --version?");
  expect_wrong("check atention", "isomer check: unknown law or preset atention, did you mean attention?");
  expect_wrong("check --jsn", "isomer check: unknown option --jsn, did you mean --json?");
  expect_wrong("check --all attention", "isomer check: expected names of laws and presets or --all, got both");
  expect_wrong("bench --law atention", "isomer bench: unknown law atention, did you mean attention?");
  expect_wrong("bench --form stepp", "isomer bench: unknown form stepp, did you mean step?");
  expect_wrong("bench fast", "isomer bench: unexpected argument fast");
  for (const char* command : {"train a.toml", "sweep a.toml --grid lr=1", "convert runs/a --mixer gla", "study"})
    expect_wrong(std::string(command) + " --out ''",
                 "isomer " + std::string(command, std::strcspn(command, " ")) + ": --out: expected a name, got none");
  expect_wrong("check --threads 0", "isomer check: --threads: Value 0 not in range 1 to 1024");
  expect_wrong("eval runs/a --examples 0", "isomer eval: --examples: expected a whole number of at least 1, got 0");
  expect_wrong("generate runs/a --prompt a --tokens few",
               "isomer generate: --tokens: expected a whole number of at least 0, got few");
}

TEST_F(Cli, ApplyAnswersWrongRequestsInOneLine) {
  expect_wrong("apply", "isomer apply: expected a law, got none");
  expect_wrong("apply atention --inputs a --output b", "isomer apply: unknown law atention, did you mean attention?");
  expect_wrong("apply attention --output b", "isomer apply: expected --inputs FILE, got none");
  expect_wrong("apply attention --inputs a", "isomer apply: expected --output FILE, got none");
  expect_wrong("apply attention --input=a", "isomer apply: unknown option --input, did you mean --inputs?");
  expect_wrong("apply attention --inputs a --output b --form chunky", "isomer apply: unknown form chunky, did you mean chunk?");
  expect_wrong("apply attention --inputs a --output b --set scale", "isomer apply: expected --set key=value, got scale");
  expect_wrong("apply attention --inputs a --output b --set scale=1 --set scale=2", "isomer apply: option scale is set twice");
  expect_wrong("apply attention --inputs /nowhere/a --output b",
               "isomer apply: cannot read /nowhere/a: No such file or directory");
  std::ofstream(path("bad")) << "not safetensors, but more than eight bytes";
  expect_wrong("apply attention --inputs " + path("bad") + " --output b",
               "isomer apply: cannot read " + path("bad") +
                   ": safetensors: expected a header of 7306634592548843374 bytes, got a file with 34 left");
}

/// What the tests of apply do: inputs in a file, a run, outputs in a file.
struct CliApply : Cli {
  const Law& law = find_law("attention");
  Tensors inputs = random_inputs(law, {.label = "", .sizes = {{"T", 7}}}, Type::f32, 1);
  std::string in = path("in.safetensors"), out = path("out.safetensors");

  [[nodiscard]] Result apply_file(const std::string& more = "", const std::string& before = "") const {
    write_safetensors(in, inputs);
    return run("apply attention --inputs '" + in + "' --output '" + out + "' " + more, before);
  }
};

TEST_F(CliApply, WritesWhatTheLibraryComputes) {
  Context context(1);
  for (Form form : law.forms()) {
    const Result result = apply_file("--threads 1 --set window=3 --form " + std::string(name_of(form)));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
    const Tensors want = apply(law, {inputs, {{"window", "3"}}, form, context}), got = read_safetensors(out);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, x] : want) EXPECT_EQ(relative_error(got.at(name), x), 0) << name;
  }
  EXPECT_EQ(files(), (std::set<std::string>{"in.safetensors", "out.safetensors"}));
}

TEST_F(CliApply, ComputesWithSixteenBitsInF32) {
  Context context(1);
  for (const Type type : {Type::bf16, Type::f16}) {
    Tensors rounded;
    for (auto& [name, x] : inputs) {
      x = x.cast(type);
      rounded.emplace(name, x.cast(Type::f32));
    }
    ASSERT_EQ(apply_file("--threads 1").status, 0);
    const Tensors want = apply(law, {rounded, {}, Form::automatic, context}), got = read_safetensors(out);
    for (const auto& [name, x] : want) {
      EXPECT_EQ(got.at(name).type(), Type::f32) << name;
      EXPECT_EQ(relative_error(got.at(name), x), 0) << name;
    }
  }
}

TEST_F(CliApply, HasZerosForGradientsOfScalesAndCounts) {
  const std::vector<std::pair<std::string, std::string>> kinds{{"max", "initial_max"}, {"subtract", "initial_count"}};
  for (const auto& [normaliser, scale] : kinds) {
    inputs =
        random_inputs(find_law("scalar_decay"),
                      {.label = "", .settings = {{"normaliser", normaliser}}, .with = {"initial_state", scale}}, Type::f32, 1);
    inputs["grad_o"] = inputs["v"].clone();
    write_safetensors(in, inputs);
    const Result result = run("apply scalar_decay --inputs '" + in + "' --output '" + out + "' --set normaliser=" + normaliser);
    ASSERT_EQ(result.status, 0) << result.err;
    const Tensors got = read_safetensors(out);
    const Tensor& zeros = got.at("grad_" + scale);
    EXPECT_EQ(zeros.shape(), inputs.at(scale).shape());
    for (Index i = 0; i < zeros.size(); ++i) EXPECT_EQ(zeros.data<float>()[i], 0.0f);
    EXPECT_TRUE(got.contains("grad_initial_state"));
  }
}

TEST_F(Cli, AFullDiskIsAFailure) {
  for (const char* command : {"list", "list --json", "tasks", "show gla"}) {
    // The rest of the line, which would send the output to a file, is a comment.
    const Result result = run(std::string(command) + " >/dev/full 2>'" + path(".err") + "' #");
    EXPECT_EQ(result.status, 1) << command;
    EXPECT_TRUE(result.err.ends_with("cannot write the output\n")) << result.err;
  }
}

TEST_F(Cli, TablesAsCommaSeparatedValues) {
  const Result list = run("list --csv");
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_TRUE(list.out.starts_with("preset,law,source,state_floats,state_grows,parameters,flops_per_token,summary\n"))
      << list.out;
  EXPECT_EQ(list.out.find("One layer of width"), std::string::npos);
  EXPECT_EQ(run("list --csv --json").status, 2);
}

TEST_F(CliApply, NamesTheNearestTensorAndOption) {
  const Result option = apply_file("--set windw=3");
  EXPECT_EQ(option.status, 2);
  EXPECT_EQ(option.err, "isomer apply: attention: unknown option windw, did you mean window?\n");
  inputs["log_forgett"] = inputs["q"].clone();
  const Result tensor = apply_file();
  EXPECT_EQ(tensor.status, 2);
  EXPECT_EQ(tensor.err, "isomer apply: attention: unknown input log_forgett, did you mean log_forget?\n");
  EXPECT_EQ(files(), (std::set<std::string>{"in.safetensors"}));
}

TEST_F(CliApply, KeepsToOneLineWhateverTheNamesHold) {
  inputs["two\nlines\t"] = inputs["q"].clone();
  EXPECT_EQ(apply_file().err, "isomer apply: attention: unknown input two?lines?\n");
}

TEST_F(CliApply, LeavesNothingWhenTheOutputCannotBeWritten) {
  inputs = random_inputs(law, {.label = "", .sizes = {{"T", 300}, {"K", 16}, {"V", 16}}}, Type::f32, 1);
  const Result full = apply_file("", "ulimit -f 1;");
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.err, "isomer apply: cannot write " + out + ": File too large\n");
  EXPECT_EQ(files(), (std::set<std::string>{"in.safetensors"}));
  out = path("missing") + "/out";
  const Result missing = apply_file();
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.err, "isomer apply: cannot write " + out + ": No such file or directory\n");
  out = "/dev/full";
  EXPECT_EQ(apply_file().status, 1);
}

TEST_F(Cli, CheckPrintsItsTableAsJson) {
  const Result result = run("check attention --json --threads 2");
  ASSERT_EQ(result.status, 0) << result.err;
  const json all = json::parse(result.out);
  EXPECT_EQ(all.at("schema"), 1);
  for (const char* key : {"cpu", "isa", "cores", "threads", "compiler", "version"})
    EXPECT_TRUE(all.at("machine").contains(key)) << key;
  EXPECT_EQ(all.at("machine").at("threads"), 2);
  std::set<std::string> forms;
  for (const json& row : all.at("rows")) {
    EXPECT_EQ(row.at("subject"), "attention");
    EXPECT_TRUE(row.at("type") == "f32" || row.at("type") == "f64");
    EXPECT_TRUE(row.at("quantity").is_string());
    EXPECT_LE(row.at("error").get<double>(), row.at("limit").get<double>());
    EXPECT_EQ(row.at("pass"), true);
    forms.insert(row.at("form"));
  }
  EXPECT_EQ(forms, (std::set<std::string>{"reference", "step", "chunk", "parallel"}));
}

TEST_F(Cli, ChecksPresets) {
  const Result result = run("check gla --json --threads 1");
  ASSERT_EQ(result.status, 0) << result.err;
  std::set<std::string> quantities;
  const json all = json::parse(result.out);
  for (const json& row : all.at("rows")) {
    EXPECT_EQ(row.at("subject"), "gla");
    EXPECT_EQ(row.at("pass"), true);
    quantities.insert(row.at("quantity"));
  }
  for (const char* quantity : {"streaming", "forms", "causality", "gradient"}) EXPECT_TRUE(quantities.contains(quantity));
}

TEST_F(Cli, CheckPrintsATable) {
  const Result result = run("check attention");
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(result.out.starts_with("subject ")) << result.out;
  EXPECT_NE(result.out.find("rows are within their limits\n"), std::string::npos);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 3) << "headings, a line for the law, and the sum: " << result.out;
  const Result all = run("check attention --all-rows");
  EXPECT_EQ(all.status, 0);
  EXPECT_GT(std::ranges::count(all.out, '\n'), 20) << all.out;
  EXPECT_NE(all.out.find("\nattention  reference  f32   o "), std::string::npos) << all.out;
}

TEST_F(Cli, BenchPrintsItsTableAsJson) {
  const Result result = run("bench --law attention --form step --quick --json --threads 1");
  ASSERT_EQ(result.status, 0) << result.err;
  const json all = json::parse(result.out);
  EXPECT_EQ(all.at("schema"), 1);
  ASSERT_FALSE(all.at("rows").empty());
  for (const json& row : all.at("rows")) {
    EXPECT_EQ(row.at("subject"), "attention");
    EXPECT_EQ(row.at("form"), "step");
    EXPECT_EQ(row.at("direction"), "step");
    EXPECT_EQ(row.at("type"), "f32");
    for (const char* size : {"B", "T", "H", "K", "V", "threads"}) EXPECT_GE(row.at(size).get<int>(), 1);
    for (const char* value : {"us_per_token", "gflops", "peak_share", "state_bytes"})
      EXPECT_GT(row.at(value).get<double>(), 0) << value;
    EXPECT_TRUE(row.at("peer").is_null() && row.at("ratio").is_null());
  }
}

TEST_F(Cli, BenchExplainsTheChoiceOfForms) {
  if (std::getenv("ISOMER_TEST_QUICK") != nullptr) GTEST_SKIP() << "takes seconds, and is no other on another instruction set";
  const Result result = run("bench --explain --law scalar_decay --quick --json --threads 1");
  ASSERT_EQ(result.status, 0) << result.err;
  const json all = json::parse(result.out);
  ASSERT_FALSE(all.at("rows").empty());
  for (const json& row : all.at("rows")) {
    EXPECT_GE(row.at("ratio").get<double>(), 1);
    EXPECT_FALSE(row.at("best").get<std::string>().empty());
    if (row.at("T") == 512 && row.at("direction") == "forward") {
      EXPECT_TRUE(row.at("chosen").get<std::string>().starts_with("chunk ")) << row;
    }
  }
}

TEST_F(Cli, BenchFindsWhereLinearLawsBecomeCheaper) {
  if (std::getenv("ISOMER_TEST_QUICK") != nullptr) GTEST_SKIP() << "takes seconds, and is no other on another instruction set";
  const Result result = run("bench --crossover --law scalar_decay --quick --json --threads 1");
  ASSERT_EQ(result.status, 0) << result.err;
  const json all = json::parse(result.out);
  ASSERT_FALSE(all.at("rows").empty());
  for (const json& row : all.at("rows")) {
    EXPECT_EQ(row.at("subject"), "scalar_decay");
    EXPECT_TRUE(row.at("crossover").is_null() || row.at("crossover").get<double>() < row.at("longest").get<double>());
  }
  EXPECT_EQ(run("bench --crossover --explain").status, 2);
}

TEST_F(Cli, TasksListsThemAndShowsExamples) {
  const Result all = run("tasks");
  EXPECT_EQ(all.status, 0);
  EXPECT_NE(all.out.find("\nmqar "), std::string::npos);
  const Result one = run("tasks parity --set shortest=4 --set longest=4 --set labels=every --show 2");
  EXPECT_EQ(one.status, 0);
  EXPECT_NE(one.out.find("\nlongest         4 "), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("\ntrain 1\n  in  "), std::string::npos) << one.out;
  const json row = json::parse(run("tasks mqar --show 2 --first 5 --split test --json").out).at("rows").at(0);
  EXPECT_EQ(row.at("task"), "mqar");
  EXPECT_EQ(row.at("vocabulary"), 8192);
  ASSERT_EQ(row.at("examples").size(), 2u);
  EXPECT_EQ(row.at("examples").at(1).at("index"), 6);
  EXPECT_EQ(row.at("examples").at(1).at("tokens").size(), 64u);
  const Result images = run("tasks images");
  EXPECT_EQ(images.status, 0) << images.err;
  EXPECT_NE(images.out.find("\npatch  "), std::string::npos) << "with or without the data: " << images.out;
  EXPECT_EQ(run("tasks images --set path=/nowhere").status, 2);
  expect_wrong("tasks mqqar", "isomer tasks: unknown task mqqar, did you mean mqar?");
  expect_wrong("tasks mqar --set pears=3", "isomer tasks: mqar: unknown option pears, did you mean pairs?");
  expect_wrong("tasks --show 3", "isomer tasks: expected a task with --set and --show, got none");
  expect_wrong("tasks mqar --split dev", "isomer tasks: expected --split train, test or validation, got dev");
  expect_wrong("tasks mqar --first -1", "isomer tasks: --first: expected a whole number of at least 0, got -1");
}

}  // namespace
}  // namespace isomer
