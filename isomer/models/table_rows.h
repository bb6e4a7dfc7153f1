#pragma once
// Rows of a table, whose classes a model of kind table (TabPFN) says from those of other rows: it learns nothing, one pass
// answers.
//
//   const TableRows known = read_table("train.csv", "species"), asked = read_table("test.csv", "species", known.columns);
//   const std::vector<RowClass> found = classify_rows(loaded->model, known, asked, context);  // found[0].label
#include <span>
#include <string>
#include <vector>

#include "isomer/models/model_folder.h"

namespace isomer {

struct TableRows {
  std::vector<std::string> columns = {};       // names
  std::vector<std::vector<double>> rows = {};  // a number for each column, NaN where there is none
  std::vector<std::string> labels = {};        // of each row; empty where nobody knows
};

/// A file of records (io/corpus.h). All fields but `label` are columns, or those that are asked for. Without a field `label` no
/// row has one. Throws Error "FILE: row N: …" for what is no number.
[[nodiscard]] TableRows read_table(const std::string& path, const std::string& label, std::span<const std::string> columns = {});

struct RowClass {
  std::string label;  // the likeliest
  double probability = 0;
};

/// The classes of the rows that are asked for, by those of the rows that are known. As TabPFN was taught, columns are
/// standardised by the known rows, those that never change there are left out, and what is missing is the mean. Throws Error for
/// more columns or classes than the model has, and where no row is known.
[[nodiscard]] std::vector<RowClass> classify_rows(const Model<float>& model, const TableRows& known, const TableRows& asked,
                                                  Context& context);

}  // namespace isomer
