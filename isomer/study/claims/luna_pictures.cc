// LUNA and its relatives in place of softmax in a vision transformer that others have trained, with a head for the ten classes of
// CIFAR-10 on a thousand pictures of 98 × 98 pixels.
#include <filesystem>

#include "isomer/models/picture_size.h"
#include "isomer/study/claims/conversions.h"
#include "isomer/study/claims/sources.h"

namespace isomer::study {

namespace {
using Part = Trial::Part;

constexpr const char* kCifar = R"(
[task]
name = "cifar"
side = 98
patch = 14
train_examples = 1000
test_examples = 600
[train]
steps = 96
batch = 16
)";
constexpr Index kSide = 98;
// Of the head, before softmax is replaced: the model itself stays as it was.
constexpr Index kHeadSteps = 240;
constexpr double kHeadRate = 3e-3;
constexpr const char* kFrozen = "layers.,norm.,input.,positions.,class_token";

/// ViT-S/14 for pictures of that size.
std::string picture_model(Isa isa) {
  const std::string from = model_folder("vit-s14");
  const auto folder_of = [](const std::string& config) { return std::filesystem::path(config).parent_path().string(); };
  // The config is written last.
  const Keepsake config{
      .folder = from, .name = "pictures", .extension = "/config.json", .made_of = "side " + std::to_string(kSide)};
  return folder_of(made_once(config, isa, [&](const std::string& path) { write_for_pictures(from, kSide, folder_of(path)); }));
}

/// With a head for the classes, which alone was trained.
std::unique_ptr<Session> picture_teacher(const Recipe& recipe, Context& context, const CellProgress& progress) {
  return tuned_once(recipe, picture_model(context.isa()), {"task.path=" + model_folder("cifar-10")}, "cifar",
                    {.steps = kHeadSteps, .rate = kHeadRate, .freeze = kFrozen}, context, progress);
}

const Procedure kPictureConversion{
    .name = "vit-s14 on 1000 pictures of cifar-10 at 98 pixels: 240 steps of its head at 3e-3, 40 of transfer, then distillation",
    .run = [](const Recipe& recipe, Context& context, const CellProgress& progress) {
      const auto accuracy = [](Session& session, Part part) {
        constexpr std::array<std::array<Index, 2>, 3> kExamples{{{0, 64}, {0, 200}, {200, 400}}};
        const auto [first, examples] = kExamples[std::size_t(part)];
        return session.evaluate({.examples = examples, .first = first}).value;
      };
      const Trial trial{.name = "pictures",
                        .teacher = picture_teacher(recipe, context, progress),
                        .score = accuracy,
                        .transfer = 40,
                        .looks = 6};
      return run_trial(trial, recipe, context, progress);
    }};

Claim converted_pictures() {
  constexpr Index kKey = 64;
  return converted(
      {.id = "luna.vit-conversion",
       .statement =
           "In place of softmax in a pre-trained vision transformer LUNA recovers at least as much as Hedgehog, and more than "
           "T2R, elu + 1, the Performer and cosFormer.",
       .quantity =
           "share of 400 test pictures of CIFAR-10 whose class is named right, at 98 x 98 pixels (49 squares; positions between "
           "those that the model learned): ViT-S/14, 12 layers of 384, a head for the classes trained once for 240 steps of 16 "
           "out of 1000 pictures, every softmax replaced, q, k, v and o kept; on the same pictures without labels 40 steps of "
           "attention transfer where there is something to learn, then 96 of distillation, batches of 16, learning rate of 1e-5 "
           "or 3e-5, as 200 others choose",
       .rule = luna_leads(false, 0.01),
       .otherwise = "budget: 96 steps of 16 pictures; Hedgehog's map starts at exp, LUNA's at random",
       .unclear = "budget: 96 steps of 16 pictures, and few seeds"},
      {.recipe = kCifar, .models = successors(kKey, 1e-5), .procedure = &kPictureConversion, .ladder = {1e-5, 3e-5}}, "accuracy");
}
}  // namespace

std::vector<Claim> luna_pictures() { return {converted_pictures()}; }

}  // namespace isomer::study
