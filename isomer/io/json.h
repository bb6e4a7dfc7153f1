#pragma once
// A JSON value: what tables, requests and metrics are read from and written to. For files of a fixed kind there are typed readers
// (safetensors.h, metrics.h). The parser behind it is compiled once, in json.cc.
//
//   Json row = Json::object({{"step", 3}, {"loss", 0.25}});
//   row.set("task", "mqar");
//   std::cout << row.dump();                                   // {"step":3,"loss":0.25,"task":"mqar"}
//   const double loss = Json::parse(text, "row").at("loss").number();
//
// Members keep their order. Numbers that are not finite are written as null, and null is read as NaN where a number is asked for.
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace isomer {

class Json {
 public:  // NOLINTBEGIN(google-explicit-constructor): it is written as what it holds
  using Array = std::vector<Json>;
  using Members = std::vector<std::pair<std::string, Json>>;

  Json(std::nullptr_t = nullptr) {}
  Json(bool value) { hold(value); }
  template <std::signed_integral I>
  Json(I value) {
    hold(std::int64_t(value));
  }
  template <std::unsigned_integral I>
  Json(I value) {
    hold(std::uint64_t(value));
  }
  template <std::floating_point F>
  Json(F value) {
    hold(double(value));
  }
  Json(const char* text) { hold(std::string(text)); }
  Json(std::string_view text) { hold(std::string(text)); }
  Json(std::string text) { hold(std::move(text)); }
  Json(Array items);
  template <class T>
  requires(!std::same_as<T, Json> && std::convertible_to<const T&, Json>) Json(const std::vector<T>& items)
      : Json(Array(items.begin(), items.end())) {}
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}  // NOLINTEND(google-explicit-constructor)
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  [[nodiscard]] static Json array();
  [[nodiscard]] static Json object(std::initializer_list<std::pair<std::string_view, Json>> members = {});

  /// Throws Error "what: expected JSON, got …"; nesting beyond any file of ours is refused too.
  [[nodiscard]] static Json parse(std::string_view text, std::string_view what);
  /// Nothing for a text that is not JSON.
  [[nodiscard]] static std::optional<Json> try_parse(std::string_view text);
  /// On one line, or indented by so many spaces. Bytes that are not UTF-8 are replaced.
  [[nodiscard]] std::string dump(int indent = -1) const;

  [[nodiscard]] bool is_null() const { return value_.index() == 0; }
  [[nodiscard]] bool is_string() const { return std::holds_alternative<std::string>(value_); }
  [[nodiscard]] bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  [[nodiscard]] bool is_integer() const {
    return std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<std::uint64_t>(value_);
  }
  [[nodiscard]] bool is_boolean() const { return std::holds_alternative<bool>(value_); }
  [[nodiscard]] bool is_array() const { return std::holds_alternative<Array>(value_); }
  [[nodiscard]] bool is_object() const { return std::holds_alternative<Members>(value_); }

  // Each throws Error "expected a string, got a number" for a value of another kind.
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const Array& items() const;
  [[nodiscard]] const Members& members() const;

  /// A member of an object; null if there is none. Throws Error for a value that is no object.
  [[nodiscard]] const Json* find(std::string_view key) const;
  /// Throws Error when there is none.
  [[nodiscard]] const Json& at(std::string_view key) const;
  /// Changes a member of an object, or adds it at the end.
  void set(std::string_view key, Json value);
  /// Adds an item to an array.
  void push(Json value);

  [[nodiscard]] bool operator==(const Json& other) const;

 private:
  friend struct JsonParser;
  void hold(bool value);
  void hold(std::int64_t value);
  void hold(std::uint64_t value);
  void hold(double value);
  void hold(std::string value);
  template <class T>
  [[nodiscard]] const T& as(const char* kind) const;
  [[nodiscard]] const char* kind() const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Members> value_;
};

}  // namespace isomer
