// As examples_test.cc, for pre-trained models: their files, tokenizers and weights.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "isomer/io/gguf.h"
#include "isomer/io/text.h"
#include "isomer/io/unicode.h"
#include "isomer/models/byte_pairs.h"
#include "isomer/models/foreign/architecture.h"
#include "isomer/models/foreign/gguf_model.h"
#include "isomer/models/picture_size.h"
#include "isomer/models/table_rows.h"
#include "isomer/models/tokenizers/chat.h"
#include "isomer/models/tokenizers/given_parts.h"
#include "isomer/models/tokenizers/normalizers.h"
#include "isomer/models/tokenizers/prefixes.h"
#include "tests/examples/surroundings.h"

namespace isomer {
namespace {

namespace fs = std::filesystem;
const std::string kGoldens = std::string(ISOMER_SOURCE_DIR) + "/tests/goldens";

/// A folder with model.gguf, in which a test works.
class PretrainedExamples : public ::testing::Test {
 protected:
  PretrainedExamples() { fs::copy(kGoldens + "/gguf/llama.gguf", "model.gguf"); }

 private:
  examples::InNewFolder here_;
};

TEST_F(PretrainedExamples, Gguf) {
  // from isomer/io/gguf.h
  const Gguf file("model.gguf");
  std::string architecture = file.text("general.architecture");  // "llama"
  TensorView norm = file.view("output_norm.weight");             // into the file, as long as `file` or a copy is there
  Tensor q = file.read("blk.0.attn_q.weight", Type::bf16);       // dequantised
  // end
  EXPECT_EQ(architecture, "llama");
  EXPECT_EQ(norm.dims(), std::vector<Index>{16});
  EXPECT_EQ(q.shape(), (std::vector<Index>{16, 16}));
}

TEST_F(PretrainedExamples, GgufModel) {
  // from isomer/models/foreign/gguf_model.h
  const GgufModel model = read_gguf_model("model.gguf");
  // end
  EXPECT_TRUE(model.weights.contains("model.norm.weight"));
}

TEST_F(PretrainedExamples, Architecture) {
  const std::string path = kGoldens + "/foreign/llama/config.json";
  const Index numbers = 1 << 12;
  // from isomer/models/foreign/architecture.h
  const ForeignConfig config(read_text(path), path);  // of config.json
  const Architecture& architecture = find_architecture(config);
  const ModelConfig model = model_of(architecture, config, numbers);
  const WeightTable table = weights_of(architecture, config);
  // end
  EXPECT_EQ(model.width, 16);
  EXPECT_FALSE(table.rules().empty());
}

TEST_F(PretrainedExamples, TableRows) {
  write_text("train.csv", "length,width,species\n1,2,a\n2,5,b\n3,1,a\n");
  write_text("test.csv", "width,length\n2,1\n");
  Context context(1);
  const auto loaded = load_model(kGoldens + "/foreign/tabpfn");
  // from isomer/models/table_rows.h
  const TableRows known = read_table("train.csv", "species"), asked = read_table("test.csv", "species", known.columns);
  const std::vector<RowClass> found = classify_rows(loaded->model, known, asked, context);  // found[0].label
  // end
  ASSERT_EQ(found.size(), 1U);
  EXPECT_GE(found[0].probability, 0.5);
}

TEST_F(PretrainedExamples, PictureSize) {
  const std::string folder = kGoldens + "/foreign/dinov2";
  // from isomer/models/picture_size.h
  write_for_pictures(folder, 16, "wide");  // pictures of 16 × 16 pixels
  // end
  EXPECT_TRUE(fs::exists("wide/config.json"));
}

TEST_F(PretrainedExamples, WeightTable) {
  // from isomer/models/foreign/weight_table.h
  WeightTable table;
  table.in("", "").take("embedding.weight", "model.embed_tokens.weight");
  const WeightTable::Scope layer = table.in("layers.0.", "model.layers.0.");
  layer.take("mixer.q.weight", "attn.c_attn.weight").rows(0, 768).transposed();
  // end
  EXPECT_EQ(table.rules()[1].theirs, "model.layers.0.attn.c_attn.weight");
}

TEST_F(PretrainedExamples, Tokenizers) {
  const std::vector<std::string> tokens{"<unk>", "<s>", "</s>", "\u2581", "a"};
  const std::vector<float> scores{0, 0, 0, -1, -2};
  const std::vector<std::int32_t> types{2, 3, 3, 1, 1};
  const std::string text = "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}";
  // from isomer/models/tokenizers/given_parts.h
  const auto own = tokenizer_of_scores({.pieces = tokens, .scores = scores, .types = types, .begin = 1});
  // end
  EXPECT_EQ(own->encode("a"), (std::vector<std::int64_t>{3, 4}));
  const std::unique_ptr<Tokenizer> bytes = byte_tokenizer();
  const Tokenizer& tokenizer = *bytes;
  // from isomer/models/tokenizers/chat.h
  const ChatTemplate form = chat_template_from(text);
  const std::vector<ChatMessage> messages{{"user", "Where does the river end?"}};
  const auto prompt = tokenizer.encode(chat_text(form, messages));  // the text has its special tokens already
  // end
  EXPECT_EQ(form.form, ChatForm::chatml);
  EXPECT_GT(prompt.size(), 20U);
}

TEST_F(PretrainedExamples, BytePairs) {
  {
    // from isomer/models/byte_pairs.h
    std::vector<std::string> documents{"low lower lowest", "new newer newest"};
    const std::unique_ptr<Tokenizer> tokenizer = train_byte_pairs(documents, {.vocabulary = 8000});
    write_text("tokenizer.json", tokenizer->to_json());
    const auto same = tokenizer_from(read_text("tokenizer.json"), "tokenizer.json", 8000);
    // end
    EXPECT_EQ(same->encode("lower"), tokenizer->encode("lower"));
    EXPECT_LT(same->encode("lower").size(), 5U);
  }
  const ModelConfig config{.vocabulary = 8000};
  const examples::Printed printed;
  // from isomer/models/tokenizer.h
  const std::string file = "tokenizer.json";
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_from(read_text(file), file, config.vocabulary);
  const std::vector<std::int64_t> tokens = tokenizer->encode("The ");
  std::cout << tokenizer->decode(tokens);
  // end
  EXPECT_EQ(printed.text(), "The ");
}

TEST_F(PretrainedExamples, Unicode) {
  std::string_view text = "A\u0301";
  std::string to;
  // from isomer/io/unicode.h
  for (CodePoint c; !text.empty(); text.remove_prefix(c.bytes)) {
    c = first_code_point(text);
    if (!is_mark(c.value)) append_lower_case(to, c.value);
  }
  // end
  EXPECT_EQ(to, "a");
}

TEST_F(PretrainedExamples, Prefixes) {
  using tokenizers::Prefixes;
  std::vector<std::pair<std::size_t, std::int32_t>> printed;
  const auto print = [&](std::size_t size, std::int32_t number) { printed.emplace_back(size, number); };
  // from isomer/models/tokenizers/prefixes.h
  const Prefixes prefixes({{"a", 0}, {"abc", 1}});
  prefixes.each("abcd", print);  // size and number of each: 1, 0 and then 3, 1
  // end
  EXPECT_EQ(printed, (std::vector<std::pair<std::size_t, std::int32_t>>{{1, 0}, {3, 1}}));
}

TEST_F(PretrainedExamples, Normalizers) {
  using namespace tokenizers;
  const Json json = Json::parse("{\"normalizer\": {\"type\": \"Lowercase\"}}", "tokenizer.json");
  // from isomer/models/tokenizers/normalizers.h
  const std::vector<NormalStep> steps = normalizers_from(json.find("normalizer"));
  const std::string text = normalized(steps, "H\u00e9llo");
  // end
  EXPECT_EQ(text, "h\u00e9llo");
}

}  // namespace
}  // namespace isomer
