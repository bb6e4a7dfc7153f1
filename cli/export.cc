// isomer export: the model of a run as a folder for other programs.
#include <filesystem>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/io/files.h"
#include "isomer/models/pretrained.h"
#include "isomer/train/recipe.h"
#include "isomer/train/run_folder.h"

namespace isomer::cli {

namespace {
struct Request {
  std::string model, out, origin;
};

/// The pre-trained model that a run began with.
std::string origin_of(const Request& request) {
  if (!request.origin.empty() || is_bare_model(request.model)) return request.origin;
  const std::string from = read_recipe(RunFolder::open(run_path(request.model).run).recipe_path()).model.from;
  if (from.empty() || is_bare_model(from)) return from;
  throw Error(request.model + ": expected the model that it began with in " + from +
              ", got none; --like FOLDER says where it is");
}

int export_request(const Request& request) {
  std::error_code none;
  if (is_there(request.out) && !std::filesystem::is_empty(request.out, none))
    throw Error("--out: expected a folder that is not there yet, got " + request.out);
  const std::string origin = origin_of(request);
  const Exported what = export_model(request.out, *load_model(request.model), origin);
  std::cout << request.out << ": "
            << (what == Exported::hugging_face ? "a folder of Hugging Face, as " + origin
                                               : std::string("a model of Isomer: no other library has this one"))
            << "\n";
  return kDone;
}
}  // namespace

Command export_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("model", request->model, "A run or a model").required();
  options.add("--out", request->out, "The folder to write").required().not_empty();
  options.add("--like", request->origin, "The Hugging Face folder that it is to be written as [the one that its run began with]")
      .value("FOLDER");
  options.footer("Example:\n  isomer export runs/trec --out trec-bert");
  return [request] { return export_request(*request); };
}

}  // namespace isomer::cli
