#pragma once
// A page for a browser: one HTML file that holds its data and needs nothing else. What draws it is built from web/ and compiled
// into the library; it shows what it is given by its `kind` (study_data.h, run_data.h).
//
//   write_text("report.html", page_of(data));
#include <string>
#include <string_view>

#include "isomer/io/json.h"

namespace isomer {

/// The page without data, as web/ builds it.
[[nodiscard]] std::string_view page_template();

/// No text in the data can end the element that holds it.
[[nodiscard]] std::string page_of(const Json& data);

}  // namespace isomer
