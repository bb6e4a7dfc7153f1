#include "isomer/base/error.h"
#include "isomer/base/suggest.h"
#include "isomer/tasks/list.h"

namespace isomer {

std::span<const TaskType* const> tasks() {
  static constexpr std::array kAll{
      &task::mqar,       &task::mqar_based,   &task::induction, &task::needle,     &task::copying,      &task::selective_copying,
      &task::mad_recall, &task::mad_noisy,    &task::mad_fuzzy, &task::mad_copy,   &task::mad_memorize, &task::mad_compress,
      &task::parity,     &task::word_problem, &task::listops,   &task::pathfinder, &task::images,       &task::cifar,
      &task::regression, &task::tables,       &task::text,      &task::classify};
  return kAll;
}

const TaskType& find_task(std::string_view name) {
  std::vector<std::string> names;
  for (const TaskType* type : tasks()) {
    if (type->name == name) return *type;
    names.emplace_back(type->name);
  }
  throw Error("unknown task " + std::string(name) + did_you_mean(name, names));
}

std::unique_ptr<Task> make_task(std::string_view name, const Settings& settings) {
  const TaskType& type = find_task(name);
  return type.make(TaskOptions(type, settings));
}

}  // namespace isomer
