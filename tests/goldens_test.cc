// Every form of every law against numbers of an independent high-precision program (tools/goldens).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "isomer/laws/bound_law.h"
#include "isomer/laws/check.h"
#include "isomer/laws/law.h"

namespace isomer {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

double number(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (text == "inf") return kInf;
  EXPECT_EQ(text, "-inf");
  return -kInf;
}

Tensors tensors(const json& from, Type type) {
  Tensors all;
  for (const auto& [name, entry] : from.items()) {
    const auto& data = entry.at("data");
    Tensor tensor(name == "offsets" ? Type::i64 : type, entry.at("shape").get<std::vector<Index>>());
    EXPECT_EQ(std::size_t(tensor.size()), data.size()) << name;
    for (Index i = 0; i < tensor.size(); ++i) {
      const json& value = data.at(std::size_t(i));
      if (tensor.type() == Type::i64)
        tensor.data<std::int64_t>()[i] = value.get<std::int64_t>();
      else if (tensor.type() == Type::f64)
        tensor.data<double>()[i] = number(value);
      else
        tensor.data<float>()[i] = float(number(value));
    }
    all.emplace(name, std::move(tensor));
  }
  return all;
}

Settings settings_of(const json& options) {
  Settings settings;
  for (const auto& [name, value] : options.items()) settings[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return settings;
}

void expect_close(const Law& law, const Tensors& got, const Tensors& want, Form form, Type type) {
  for (const auto& [name, tensor] : want) {
    ASSERT_TRUE(got.contains(name)) << "no " << name;
    const bool exact = form == Form::reference && type == Type::f64;
    const double limit = exact ? 1e-12 : law.tolerance(name) * epsilon_of(type);
    EXPECT_LE(relative_error(got.at(name), tensor, scale_of(name, want)), limit) << name;
  }
  for (const auto& [name, tensor] : got) EXPECT_TRUE(want.contains(name)) << "unexpected " << name;
}

/// Some goldens are e^100 on purpose, where only double has numbers.
bool representable(const Tensors& want, Type type) {
  if (type == Type::f64) return true;
  return std::all_of(want.begin(), want.end(), [](const auto& entry) {
    const double* x = entry.second.template data<double>();
    return std::all_of(x, x + entry.second.size(),
                       [](double value) { return std::isinf(value) || std::abs(value) < std::numeric_limits<float>::max(); });
  });
}

void run_case(const Law& law, const json& what, Context& context) {
  const Settings settings = settings_of(what.at("options"));
  const Tensors want = tensors(what.at("outputs"), Type::f64);
  for (Type type : {Type::f32, Type::f64}) {
    if (!representable(want, type)) continue;
    const Tensors inputs = tensors(what.at("inputs"), type);
    for (Form form : {Form::automatic, Form::reference, Form::step, Form::chunk, Form::parallel}) {
      if (!law.bind(settings)->offers(form)) continue;
      SCOPED_TRACE(std::string(law.name()) + " " + what.at("name").get<std::string>() + " " + std::string(name_of(form)) + " " +
                   name_of(type));
      try {
        expect_close(law, apply(law, {inputs, settings, form, context}), want, form, type);
      } catch (const Error& problem) {
        ADD_FAILURE() << problem.what();
      }
    }
  }
}

TEST(Goldens, AreMetByEveryForm) {
  Context context(2);
  int cases = 0;
  for (const auto& file : fs::directory_iterator(fs::path(ISOMER_SOURCE_DIR) / "tests/goldens")) {
    if (file.path().extension() != ".json") continue;
    std::ifstream in(file.path());
    const json golden = json::parse(in);
    ASSERT_EQ(golden.at("schema"), 1);
    const std::string name = golden.at("law").get<std::string>();
    const auto law = std::find_if(laws().begin(), laws().end(), [&](const Law* other) { return other->name() == name; });
    // The goldens of scalar_decay came before the law did; once it is in laws() every file must name one.
    if (law == laws().end() && laws().size() == 1) continue;
    ASSERT_NE(law, laws().end()) << file.path() << " is of an unknown law " << name;
    for (const json& what : golden.at("cases")) run_case(**law, what, context);
    cases += int(golden.at("cases").size());
  }
  EXPECT_GT(cases, 0);
}

}  // namespace
}  // namespace isomer
