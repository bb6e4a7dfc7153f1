#pragma once
// The tasks of this folder, one a file. Only tasks.cc and the file that defines one need this.
#include "isomer/tasks/task.h"

namespace isomer::task {

extern const TaskType mqar, mqar_based, induction, needle;
extern const TaskType copying, selective_copying;
extern const TaskType mad_recall, mad_noisy, mad_fuzzy, mad_copy, mad_memorize, mad_compress;
extern const TaskType parity, word_problem, listops;
extern const TaskType pathfinder, images, cifar, regression, tables, text, classify;

}  // namespace isomer::task
