#pragma once
// Every key of a recipe but the options of tasks and mixers, with what it may be.
#include <string>
#include <vector>

#include "isomer/train/recipe.h"

namespace isomer {

/// Reads or writes every key of a recipe: one list for both directions.
class Binder {
 public:
  virtual ~Binder() = default;
  virtual void number(const char* key, double& value, double least, double most) = 0;
  virtual void size(const char* key, Index& value, Index least) = 0;
  virtual void flag(const char* key, bool& value) = 0;
  virtual void choice(const char* key, std::string& value, const std::vector<std::string>& choices) = 0;
  virtual void text(const char* key, std::string& value) = 0;
  virtual void list(const char* key, std::vector<std::string>& value) = 0;
};

/// Calls the binder for each key in the order in which they are written. A model that is there already (model.from) has no keys
/// for its sizes.
void bind(Recipe& recipe, Binder& binder);

}  // namespace isomer
