#include "isomer/io/json.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "isomer/base/error.h"

namespace isomer {

/// Between the value and nlohmann's. Reads event by event: objects may have a hundred thousand members (vocabularies).
struct JsonParser {
  using Other = nlohmann::ordered_json;
  // Files of ours have less than ten levels; a hostile one should not use up the stack.
  static constexpr std::size_t kDeepest = 200;

  static Json parse(std::string_view text) {
    JsonParser events;
    Other::sax_parse(text, &events);
    return std::move(events.whole_);
  }

  // What nlohmann calls, by these names.
  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& /*text*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Other::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) { return open(Json::array()); }
  bool key(std::string& name) {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() {
    keep_last(std::get<Json::Members>(open_.back().value.value_));
    return close();
  }
  bool end_array() { return close(); }
  template <class Problem>
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const Problem& problem) {
    throw problem;
  }

 private:
  struct Open {
    Json value;
    std::string key = {};  // of the member that comes next
  };

  bool add(Json value) {
    if (open_.empty())
      whole_ = std::move(value);
    else if (auto* members = std::get_if<Json::Members>(&open_.back().value.value_))
      members->emplace_back(std::move(open_.back().key), std::move(value));
    else
      std::get<Json::Array>(open_.back().value.value_).push_back(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() == kDeepest) throw Error("values within values, more than " + std::to_string(kDeepest) + " deep");
    open_.push_back({std::move(value)});
    return true;
  }
  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }
  /// Of members with one name the last counts, in the place of the first.
  static void keep_last(Json::Members& members) {
    std::unordered_map<std::string_view, std::size_t> places;
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (const auto [known, is_new] = places.emplace(members[i].first, i); !is_new) {
        members[known->second].second = std::move(members[i].second);
        again.push_back(i);
      }
    for (std::size_t i = again.size(); i-- > 0;) members.erase(members.begin() + std::ptrdiff_t(again[i]));
  }

  Json whole_;
  std::vector<Open> open_;

 public:
  static Other to(const Json& value) {
    return std::visit(
        [](const auto& held) -> Other {
          using Held = std::remove_cvref_t<decltype(held)>;
          if constexpr (std::same_as<Held, std::monostate>) {
            return nullptr;
          } else if constexpr (std::same_as<Held, Json::Array>) {
            Other items = Other::array();
            for (const Json& item : held) items.push_back(to(item));
            return items;
          } else if constexpr (std::same_as<Held, Json::Members>) {
            Other members = Other::object();
            for (const auto& [key, member] : held) members[key] = to(member);
            return members;
          } else {
            return held;
          }
        },
        value.value_);
  }
};

Json::Json(Array items) : value_(std::move(items)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;
bool Json::operator==(const Json& other) const { return value_ == other.value_; }

void Json::hold(bool value) { value_ = value; }
void Json::hold(std::int64_t value) { value_ = value; }
void Json::hold(std::uint64_t value) { value_ = value; }
void Json::hold(double value) { value_ = value; }
void Json::hold(std::string value) { value_ = std::move(value); }

Json Json::array() { return Array{}; }

Json Json::object(std::initializer_list<std::pair<std::string_view, Json>> members) {
  Members all;
  all.reserve(members.size());
  for (const auto& [key, value] : members) all.emplace_back(key, value);
  Json object;
  object.value_ = std::move(all);
  return object;
}

Json Json::parse(std::string_view text, std::string_view what) {
  const std::string who(what);
  try {
    return JsonParser::parse(text);
  } catch (const nlohmann::json::exception& problem) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …; last read: …", and that may be any bytes
    std::string_view all = problem.what();
    all = all.substr(0, all.find("; last read: "));
    const std::size_t end = all.find("] ");
    fail(who.c_str(), "expected JSON, got a ", end == std::string_view::npos ? all : all.substr(end + 2));
  } catch (const Error& problem) {
    fail(who.c_str(), "expected JSON, got ", problem.what());
  }
}

std::optional<Json> Json::try_parse(std::string_view text) {
  try {
    return parse(text, "");
  } catch (const Error&) {
    return {};
  }
}

std::string Json::dump(int indent) const {
  return JsonParser::to(*this).dump(indent, ' ', false, JsonParser::Other::error_handler_t::replace);
}

const char* Json::kind() const {
  constexpr std::array<const char*, 8> kNames{"null",     "a boolean", "a number", "a number",
                                              "a number", "a string",  "an array", "an object"};
  return kNames[value_.index()];
}

template <class T>
const T& Json::as(const char* kind) const {
  if (const T* held = std::get_if<T>(&value_)) return *held;
  throw Error(std::string("expected ") + kind + ", got " + this->kind());
}

bool Json::boolean() const { return as<bool>("a boolean"); }

std::int64_t Json::integer() const {
  if (const auto* held = std::get_if<std::uint64_t>(&value_)) {
    if (*held <= std::uint64_t(std::numeric_limits<std::int64_t>::max())) return std::int64_t(*held);
    throw Error("expected a whole number below 2^63, got " + std::to_string(*held));
  }
  return as<std::int64_t>("a whole number");
}

double Json::number() const {
  if (is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (const auto* held = std::get_if<std::uint64_t>(&value_)) return double(*held);
  if (const auto* held = std::get_if<std::int64_t>(&value_)) return double(*held);
  return as<double>("a number");
}

const std::string& Json::text() const { return as<std::string>("a string"); }
const Json::Array& Json::items() const { return as<Array>("an array"); }
const Json::Members& Json::members() const { return as<Members>("an object"); }

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members())
    if (name == key) return &value;
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* found = find(key)) return *found;
  throw Error("expected a member " + std::string(key) + ", got none");
}

void Json::set(std::string_view key, Json value) {
  (void)members();
  auto& all = std::get<Members>(value_);
  for (auto& [name, old] : all)
    if (name == key) {
      old = std::move(value);
      return;
    }
  all.emplace_back(key, std::move(value));
}

void Json::push(Json value) {
  (void)items();
  std::get<Array>(value_).push_back(std::move(value));
}

}  // namespace isomer
