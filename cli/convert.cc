// isomer convert: a trained model with other mixers, as a run that can be trained on.
#include <map>

#include "cli/command.h"
#include "cli/report.h"
#include "isomer/base/error.h"
#include "isomer/base/settings.h"
#include "isomer/train/trainer.h"
#include "isomer/train/transfer.h"

namespace isomer::cli {

namespace {
using Fate = ConvertedParameter::Fate;

struct Request {
  std::string run, mixer, out, layers;
  std::vector<std::string> settings;
  Index transfer = 0;
  bool json = false;
  int threads = 0;
};

Index number_of(std::string_view text, const std::string& all) {
  Index number = 0;
  // More layers than any model has.
  if (!parse_number(text, number) || number < 0 || number > 100000)
    throw Error("--layers: expected numbers and ranges of layers (0,2 or 1-3), got " + all);
  return number;
}

/// "0,2", "1-3", "0,4-6"
std::vector<Index> layers_of(const std::string& text) {
  std::vector<Index> layers;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const Index first = number_of(part.substr(0, dash), text);
    const Index last = dash == std::string::npos ? first : number_of(part.substr(dash + 1), text);
    if (last < first) throw Error("--layers: expected ranges that go up (1-3), got " + text);
    for (Index layer = first; layer <= last; ++layer) layers.push_back(layer);
  }
  return layers;
}

std::string start_of(const graph::Init& init) {
  using Kind = graph::Init::Kind;
  switch (init.kind) {
    case Kind::constant: return text_of(init.a);
    case Kind::normal: return "normal, deviation " + text_of(init.b);
    case Kind::uniform: return "uniform from " + text_of(init.a) + " to " + text_of(init.b);
    case Kind::identity: return "the unit matrix";
    case Kind::near_identity: return "the unit matrix times " + text_of(init.a) + ", plus normal, deviation " + text_of(init.b);
    case Kind::orthogonal: return "orthogonal directions";
    default: return "as the preset says";
  }
}

std::string shape_text(const std::vector<Index>& shape) {
  std::string text;
  for (const Index n : shape) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

/// The same of several layers in one row.
void print_parameters(const std::vector<ConvertedParameter>& fates) {
  std::map<std::vector<std::string>, std::string> layers;
  std::vector<std::vector<std::string>> order;
  for (const ConvertedParameter& p : fates) {
    const std::string prefix = p.layer < 0 ? "" : "layers." + std::to_string(p.layer) + ".mixer.";
    const std::vector<std::string> row{p.name.substr(prefix.size()), shape_text(p.shape), std::string(name_of(p.fate)),
                                       p.fate == Fate::fresh ? start_of(p.init) : ""};
    std::string& of = layers[row];
    if (of.empty()) order.push_back(row);
    of += (of.empty() ? "" : ",") + (p.layer < 0 ? "shared" : std::to_string(p.layer));
  }
  Table table({"parameter", "shape", "", "starts with", "layers"});
  for (std::vector<std::string>& row : order) {
    const std::string of = layers[row];
    row.push_back(of);
    table.add(row);
  }
  table.print();
}

void print_transfer(const std::vector<TransferReport>& reports, Index steps) {
  for (const TransferReport& r : reports)
    std::cout << "transfer of layer " << r.layer << ", "
              << (r.weights ? "divergence of attention weights" : "squared error of outputs") << ": " << text_of(r.before)
              << " before, " << text_of(r.after) << " after " << steps << " steps\n";
}

Json rows_of(const std::vector<ConvertedParameter>& fates, const std::vector<TransferReport>& reports) {
  Json rows = Json::array();
  for (const ConvertedParameter& p : fates) {
    Json row = Json::object(
        {{"layer", p.layer < 0 ? Json() : Json(p.layer)}, {"parameter", p.name}, {"shape", p.shape}, {"fate", name_of(p.fate)}});
    if (p.fate == Fate::fresh) row.set("start", start_of(p.init));
    rows.push(row);
  }
  for (const TransferReport& r : reports)
    rows.push(Json::object(
        {{"layer", r.layer}, {"transfer", r.weights ? "weights" : "outputs"}, {"before", r.before}, {"after", r.after}}));
  return rows;
}

std::vector<TransferReport> transferred(const Request& request, Session& from, Session& to,
                                        const std::vector<ConvertedParameter>& fates, Context& context) {
  if (request.transfer == 0) return {};
  const Progress progress;
  TransferOptions options{.steps = request.transfer};
  options.progress = [&](Index step, double loss) {
    progress.show("transfer " + std::to_string(step) + "/" + std::to_string(request.transfer) + "  loss " + text_of(loss));
  };
  return transfer(from, to, fates, options, context);
}

int convert_request(const Request& request) {
  RunFolder::expect_none(request.out);
  Context context(request.threads);
  const auto from = open_run(request.run, context);
  const Conversion plan = plan_conversion(
      from->recipe(), {.mixer = request.mixer, .layers = layers_of(request.layers), .overrides = request.settings});
  Session to(plan.recipe, context);
  const std::vector<ConvertedParameter> fates = take_weights(*from, to, plan.layers);
  const std::vector<TransferReport> reports = transferred(request, *from, to, fates, context);
  try {
    (void)start_run(request.out, to);
  } catch (const Error& problem) {
    throw RunFailed(problem.what());
  }
  if (request.json) {
    print_json(context, rows_of(fates, reports));
    return kDone;
  }
  print_parameters(fates);
  std::cout << "everything outside of these mixers is kept\n";
  print_transfer(reports, request.transfer);
  std::cout << "fine-tune with: " << resume_command(request.out) << "\n";
  return kDone;
}
}  // namespace

Command convert_command(Options& options) {
  auto request = std::make_shared<Request>();
  options.add("run", request->run, "Folder of a run").required();
  options.add("--mixer", request->mixer, "The preset that takes the place of the old mixers").required();
  options.add("--out", request->out, "Folder of the new run").required();
  options.add("--layers", request->layers, "Which layers, e.g. 0,2 or 1-3 [all]");
  options.add("--transfer", request->transfer, "Steps in which what is new learns to do what the old layers did [0]")
      .value("N")
      .at_least(0);
  options.set(request->settings, "A key of the new recipe, e.g. mixer.luna.features=16 or train.steps=500");
  options.flag("--json", request->json, "One JSON object instead of a table");
  options.threads(request->threads);
  options.footer(
      "Example:\n  isomer convert runs/mqar --mixer hedgehog --transfer 300 --set train.steps=500 --out runs/hedgehog");
  return [request] { return convert_request(*request); };
}

}  // namespace isomer::cli
