// As examples_test.cc, for base and io.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/base/stopwatch.h"
#include "isomer/base/tensor_view.h"
#include "isomer/base/watch.h"
#include "isomer/io/corpus.h"
#include "isomer/io/event_file.h"
#include "isomer/io/file_lock.h"
#include "isomer/io/json.h"
#include "isomer/io/safetensors_map.h"
#include "isomer/io/table.h"
#include "isomer/io/text.h"
#include "isomer/io/toml.h"
#include "isomer/io/utf8.h"
#include "isomer/laws/bound_law.h"
#include "isomer/laws/layout.h"
#include "isomer/laws/random.h"
#include "tests/examples/surroundings.h"

namespace isomer {
namespace {

using examples::InNewFolder;

template <class T, Isa I>
void kernel(const T* in, T* out, Index n) {
  for (Index i = 0; i < n; ++i) out[i] = 2 * in[i];
}

TEST(Examples, Contexts) {
  const Index n = 5;
  std::vector<Index> done(std::size_t(n), 0);
  const auto work = [&](Index task, Workspace& scratch) {
    const Workspace::Scope scope(scratch);
    Index* own = scratch.take<Index>(1);
    *own = task + 1;
    done[std::size_t(task)] = *own;
  };
  // from isomer/base/context.h
  Context context(2);                                                                 // two threads
  context.parallel(n, [&](Index task, Workspace& scratch) { work(task, scratch); });  // tasks 0 … n-1, in any order
  // end
  EXPECT_EQ(done, (std::vector<Index>{1, 2, 3, 4, 5}));

  const float x[n] = {1, 2, 3, 4, 5};
  float y[n] = {};
  // from isomer/base/cpu.h
  with_isa(context.isa(), [&]<Isa I>() { kernel<float, I>(x, y, n); });
  // end
  EXPECT_EQ(y[4], 10);
}

TEST(Examples, Stopwatches) {
  int calls = 0;
  const auto work = [&] { ++calls; };
  // from isomer/base/stopwatch.h
  const Stopwatch watch;
  work();
  const double took = watch.seconds();
  // end
  EXPECT_GE(took, 0);
  EXPECT_EQ(calls, 1);
}

TEST(Examples, Plans) {
  const Index B = 1, T = 9;
  const std::vector<std::int64_t> offsets{0, 5, 9};
  // from isomer/base/pool.h
  PoolVector<Sequence> all = sequences("op", B, T, offsets);  // laws/layout.h
  // end
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].first, 5);

  const Settings settings{{"chunk", "64"}};
  // from isomer/base/settings.h
  const Index window = read_size(settings, "window", 0);  // 0 unless the user says otherwise
  // end
  EXPECT_EQ(window, 0);
  EXPECT_EQ(read_size({{"window", "7"}}, "window", 0), 7);
}

TEST(Examples, TensorViews) {
  const Index B = 1, T = 2, K = 3;
  std::vector<float> memory(6);
  std::iota(memory.begin(), memory.end(), 0.0f);
  const Tensor tensor(Type::f64, {2, 3});
  const auto* pointer = reinterpret_cast<const std::byte*>(memory.data());
  // from isomer/base/tensor_view.h
  TensorView q = view_of(tensor);
  TensorView k{.type = Type::f32, .data = pointer, .rank = 3, .shape = {B, T, K}, .stride = {T * K, K, 1}};
  View<const float, 3> numbers = k.view<const float, 3>();
  // end
  EXPECT_EQ(q.dims(), (std::vector<Index>{2, 3}));
  EXPECT_EQ(numbers(0, 1, 2), 5);
}

struct Ended {};
bool asked_to_end = false;

TEST(Examples, Watches) {
  const Law& law = find_law("attention");
  Tensors inputs = random_inputs(law, {.sizes = {{"B", 1}, {"T", 5}}}, Type::f32, 1);
  Tensor o(Type::f32, inputs.at("v").shape());
  LawViews in, out;
  for (const char* name : {"q", "k", "v"}) in[std::size_t(law.input(name))] = law_view(inputs.at(name));
  out[std::size_t(law.output("o"))] = law_view(o);
  const auto bound = law.bind({});
  Context context(1);
  bool ended = false;
  asked_to_end = true;
  try {
    // from isomer/base/watch.h
    const Watch watch([] {
      if (asked_to_end) throw Ended();
    });
    bound->forward(in, out, {.context = context});  // throws Ended soon after it was asked to
    // end
    // It looks five times a second: a call may be done before.
    for (const Stopwatch time; time.seconds() < 60;) bound->forward(in, out, {.context = context});
  } catch (const Ended&) {
    ended = true;
  }
  EXPECT_TRUE(ended);
}

TEST(Examples, Corpora) {
  const InNewFolder here;
  std::filesystem::create_directory("books");
  write_text("books/one.txt", "One.");
  write_text("posts.jsonl", "{\"id\": 1, \"body\": \"hello\"}\n");
  write_text("mail.csv", "label,text\nspam,\"buy, now\"\n");
  // from isomer/io/corpus.h
  std::vector<std::string> books = read_documents("books/", "");           // a folder of texts
  std::vector<std::string> posts = read_documents("posts.jsonl", "body");  // the field of every record
  const std::vector<std::string> fields{"text", "label"};
  std::vector<std::vector<std::string>> rows = read_records("mail.csv", fields);
  // end
  EXPECT_EQ(books, std::vector<std::string>{"One."});
  EXPECT_EQ(posts, std::vector<std::string>{"hello"});
  EXPECT_EQ(rows, (std::vector<std::vector<std::string>>{{"buy, now", "spam"}}));
}

TEST(Examples, EventFiles) {
  const InNewFolder here;
  std::filesystem::create_directories("runs/a/tensorboard");
  // from isomer/io/event_file.h
  EventFile file("runs/a/tensorboard/events.out.tfevents.1700000000.host.42", 1.7e9);
  file.add({.step = 10, .wall_time = 1.7e9, .scalars = {{"train/loss", 2.5}}});
  // end
  EXPECT_NE(read_text("runs/a/tensorboard/events.out.tfevents.1700000000.host.42").find("train/loss"), std::string::npos);
}

TEST(Examples, FileLocks) {
  const InNewFolder here;
  std::filesystem::create_directories("runs/a");
  write_text("runs/a/recipe.toml", "");
  const auto take = [] {
    // from isomer/io/file_lock.h
    std::optional<FileLock> lock = FileLock::take("runs/a/recipe.toml");
    if (!lock) throw Error("another holds it");
    // end
    return lock;
  };
  {
    const auto held = take();
    EXPECT_TRUE(held.has_value());
    EXPECT_THROW((void)take(), Error);
  }
  EXPECT_TRUE(take().has_value());
}

TEST(Examples, Json) {
  const examples::Printed printed;
  const std::string text = "{\"loss\": 0.5}";
  // from isomer/io/json.h
  Json row = Json::object({{"step", 3}, {"loss", 0.25}});
  row.set("task", "mqar");
  std::cout << row.dump();  // {"step":3,"loss":0.25,"task":"mqar"}
  const double loss = Json::parse(text, "row").at("loss").number();
  // end
  EXPECT_EQ(printed.text(), "{\"step\":3,\"loss\":0.25,\"task\":\"mqar\"}");
  EXPECT_EQ(loss, 0.5);
}

TEST(Examples, MappedFiles) {
  const InNewFolder here;
  std::filesystem::create_directory("model");
  Tensors tensors;
  tensors.emplace("layers.0.q.weight", Tensor(Type::f32, {2, 3}));
  tensors.emplace("head.weight", Tensor(Type::f64, {4}));
  write_safetensors("model/model.safetensors", tensors);
  // from isomer/io/safetensors_map.h
  const MappedSafetensors weights("model");          // a folder with model.safetensors or model.safetensors.index.json
  TensorView q = weights.view("layers.0.q.weight");  // into the file, as long as `weights` or a copy of it is there
  Tensor head = weights.read("head.weight", Type::f32);
  // end
  EXPECT_EQ(q.dims(), (std::vector<Index>{2, 3}));
  EXPECT_EQ(head.type(), Type::f32);
}

struct LawRow {
  double seconds = 0.5;
};
// from isomer/io/table.h
Json to_json(const LawRow& row);    // its members, under names that stay: what is added is added, nothing is renamed
Cells cells_of(const LawRow& row);  // what a reader sees of it
// end
Json to_json(const LawRow& row) { return Json::object({{"seconds", row.seconds}}); }
Cells cells_of(const LawRow& row) { return {{"time", std::to_string(int(row.seconds * 1000)) + " ms"}}; }

TEST(Examples, Tables) {
  const Context context(1);
  const std::vector<LawRow> rows(2);
  // from isomer/io/table.h
  const Json json = table_json(machine_of(context), rows_json(rows));  // {"schema": 1, "machine": …, "rows": …}
  const std::string text = table_text(rows);                           // headings and rows
  const std::string csv = table_csv(rows_json(rows));
  // end
  EXPECT_EQ(json.at("schema").integer(), 1);
  EXPECT_NE(text.find("500 ms"), std::string::npos);
  EXPECT_EQ(csv, "seconds\n0.5\n0.5\n");
}

TEST(Examples, Toml) {
  const InNewFolder here;
  write_text("recipe.toml", "# A recipe\n\n\n\n\n\n\n\n\n\n[train]\nsteps = 1000\n");
  // from isomer/io/toml.h
  const TomlFile file = read_toml("recipe.toml");
  const TomlEntry& first = file.entries[0];  // key "train.steps", text "1000", line 12
  // end
  EXPECT_EQ(first.key, "train.steps");
  EXPECT_EQ(first.text, "1000");
  EXPECT_EQ(first.line, 12);
}

TEST(Examples, Characters) {
  std::string_view text = "a\u00e9 1";
  std::string letters;
  // from isomer/io/utf8.h
  for (Utf8 c; !text.empty(); text.remove_prefix(c.bytes)) {
    c = first_character(text);
    if (c.kind == CharacterClass::letter) letters += text.substr(0, c.bytes);
  }
  // end
  EXPECT_EQ(letters, "a\u00e9");
}

}  // namespace
}  // namespace isomer
