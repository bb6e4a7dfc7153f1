#include "isomer/report/study_data.h"

#include "isomer/base/machine.h"
#include "isomer/report/schema.h"

namespace isomer {

namespace {
Json sources_json() {
  Json all = Json::array();
  for (const study::Source& source : study::sources())
    all.push(Json::object({{"id", source.id}, {"title", source.title}, {"about", source.about}}));
  return all;
}

Json claims_json() {
  Json all = Json::array();
  for (const study::Claim* claim : study::find_claims({})) all.push(study::to_json(*claim));
  return all;
}

Json results_json(const std::vector<study::Result>& results) {
  Json all = Json::array();
  for (const study::Result& result : results) all.push(study::to_json(result));
  return all;
}
}  // namespace

StudyFiles read_study(const std::string& folder, const std::string& kept) {
  StudyFiles files;
  const auto read = [&](const std::string& from, std::vector<study::Result>& to) {
    if (from.empty()) return;
    study::ResultFiles found = study::read_result_files(from);
    to = std::move(found.results);
    files.problems.insert(files.problems.end(), found.problems.begin(), found.problems.end());
  };
  read(folder, files.results);
  read(kept, files.kept);
  return files;
}

Json to_json(const StudyFiles& files) {
  return Json::object({{"schema", kPageSchema},
                       {"kind", "study"},
                       {"version", version()},
                       {"problems", files.problems},
                       {"sources", sources_json()},
                       {"claims", claims_json()},
                       {"results", results_json(files.results)},
                       {"kept", results_json(files.kept)},
                       {"mixers", files.mixers}});
}

}  // namespace isomer
