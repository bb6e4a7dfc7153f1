#pragma once
// The tasks of this folder, one a file. Only tasks.cc and the file that defines one need this.
#include "isomer/tasks/task.h"

namespace isomer::task {

extern const TaskType mqar, mqar_based, copying, parity, word_problem;

}  // namespace isomer::task
