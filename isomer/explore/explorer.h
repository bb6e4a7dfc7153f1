#pragma once
// The explorer behind a page: requests in, answers out, without a socket (cli/http_server.h has that).
//
//   const Explorer explorer({.preset = "gla"});
//   const HttpAnswer answer = explorer.answer({.method = "POST",
//                                              .path = "/api/view",
//                                              .content_type = "application/json",
//                                              .body = R"({"preset": "gla", "text": "the cat sat"})"});
//
//   GET  /                the page
//   POST /api/view        a layer and the effective attention matrix of a head     (looks.h; the question: question.h)
//        /api/maps        those of all heads of a layer
//        /api/curves      the state of a head over time
//        /api/state       the state of a head at a token
//        /api/influence   what another word in the place of a token does
//        /api/terms       values of what the equations name
//
// Everything else is refused, and no file is read: the model is in memory. Any number of threads may ask.
#include <deque>
#include <mutex>

#include "isomer/explore/http.h"
#include "isomer/explore/looks.h"
#include "isomer/explore/question.h"

namespace isomer {

struct ExplorerOptions {
  std::string preset = "gla";                       // which one is shown first, beside softmax
  std::shared_ptr<const LookedAt> model = nullptr;  // in place of a preset
  std::string text = {};                            // empty: a sentence, or with a model a few of its tokens
};

class Explorer {
 public:
  /// Throws Error for a preset that there is none of, and for a text that the model does not know.
  explicit Explorer(ExplorerOptions options);

  /// What the page begins with: the presets, the run and the first question. `show` puts it into a page.
  [[nodiscard]] Json start() const;
  void show(std::string page) { page_ = std::move(page); }

  [[nodiscard]] HttpAnswer answer(const HttpRequest& request) const;

 private:
  using Look = Json (*)(const Sight&, const Where&, Context&);
  [[nodiscard]] HttpAnswer look(Look at, const HttpRequest& request) const;
  [[nodiscard]] std::unique_ptr<const Subject> subject_of(const Question& question) const;
  /// Looks at the same thing begin with the same calls of laws: the last few are kept.
  [[nodiscard]] std::shared_ptr<const Sight> sight_of(const Question& question, Context& context) const;

  struct Kept {
    std::string key;
    std::shared_ptr<const Sight> sight;
  };
  ExplorerOptions options_;
  std::string page_;
  mutable std::mutex mutex_;  // of what is kept
  mutable std::deque<Kept> kept_;
};

}  // namespace isomer
