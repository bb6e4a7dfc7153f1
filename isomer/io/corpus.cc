#include "isomer/io/corpus.h"

#include <algorithm>
#include <filesystem>

#include "isomer/base/error.h"
#include "isomer/io/bytes.h"
#include "isomer/io/files.h"
#include "isomer/io/json.h"
#include "isomer/io/utf8.h"

namespace isomer {

namespace {
namespace fs = std::filesystem;

using Record = std::vector<std::string>;

std::string read_file(const fs::path& path, std::size_t most) {
  const std::vector<unsigned char> bytes = read_bytes(path, most);
  return {bytes.begin(), bytes.end()};
}

std::string listed(std::span<const std::string> names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

/// What reads one kind of file line by line, and says where it is when something is wrong.
struct Place {
  const std::string& name;
  std::size_t line = 1;
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    isomer::fail((name + ":" + std::to_string(line)).c_str(), parts...);
  }
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) fail(parts...);
  }
};

std::string text_of_value(const Json& value, const std::string& field, const Place& place) {
  if (value.is_string()) return value.text();
  const bool plain = value.is_number() || value == Json(true) || value == Json(false);
  place.require(plain, "expected text in the field ", field, ", got ", value.dump());
  return value.dump();
}

/// `read(record, place)` of every line that is not blank.
template <class Read>
void for_each_line(std::string_view text, const std::string& name, Read read) {
  Place place{name, 0};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++place.line;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json json = Json::parse(line, name + ":" + std::to_string(place.line));
    place.require(json.is_object(), "expected an object, got ", json.dump());
    read(json, place);
  }
}

std::vector<Record> parse_lines(std::string_view text, const std::string& name, std::span<const std::string> fields) {
  std::vector<Record> records;
  for_each_line(text, name, [&](const Json& json, const Place& place) {
    Record& record = records.emplace_back();
    for (const std::string& field : fields) {
      const Json* value = json.find(field);
      if (value == nullptr) {
        std::vector<std::string> there;
        for (const auto& member : json.members()) there.push_back(member.first);
        place.fail("expected a field ", field, ", got none; there are ", listed(there));
      }
      record.push_back(text_of_value(*value, field, place));
    }
  });
  return records;
}

/// The members of the first record, of every record.
NamedRecords parse_all_lines(std::string_view text, const std::string& name) {
  constexpr std::size_t kMostValues = std::size_t{1} << 26;  // lines may be shorter than what they stand for
  NamedRecords all;
  for_each_line(text, name, [&](const Json& json, const Place& place) {
    if (all.rows.empty())
      for (const auto& member : json.members()) all.names.push_back(member.first);
    place.require((all.rows.size() + 1) * all.names.size() <= kMostValues, "expected at most ", kMostValues, " values");
    Record& record = all.rows.emplace_back(all.names.size());
    for (std::size_t i = 0; i < all.names.size(); ++i)
      if (const Json* value = json.find(all.names[i]); value != nullptr && *value != Json())
        record[i] = text_of_value(*value, all.names[i], place);
    for (const auto& member : json.members())
      place.require(std::ranges::find(all.names, member.first) != all.names.end(),
                    "expected fields of the first record, which are ", listed(all.names), ", got ", member.first);
  });
  return all;
}

/// Rows of values, of which some are between quotes and may hold separators, ends of lines and doubled quotes.
class Rows {
 public:
  Rows(std::string_view text, char separator, const std::string& name) : text_(text), separator_(separator), place_{name} {}

  /// False at the end. Empty lines are left out.
  [[nodiscard]] bool next(Record& row) {
    row.clear();
    for (; at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r'); ++at_)
      if (text_[at_] == '\n') ++line_;
    place_.line = line_;
    if (at_ == text_.size()) return false;
    do row.push_back(value());
    while (at_ < text_.size() && text_[at_] == separator_ && ++at_);
    // An end of a line, which may have two characters.
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_, ++line_;
    return true;
  }
  [[nodiscard]] const Place& place() const { return place_; }

 private:
  [[nodiscard]] std::string value() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(std::string{separator_, '\r', '\n'}, begin), text_.size());
    return std::string(text_.substr(begin, at_ - begin));
  }
  [[nodiscard]] std::string quoted() {
    std::string all;
    for (++at_;; ++at_) {
      place_.require(at_ < text_.size(), "expected a quote at the end of a value, got none");
      if (text_[at_] == '"' && (++at_ == text_.size() || text_[at_] != '"')) break;
      if (text_[at_] == '\n') ++line_;
      all += text_[at_];
    }
    const bool ends = at_ == text_.size() || text_[at_] == separator_ || text_[at_] == '\r' || text_[at_] == '\n';
    place_.require(ends, "expected a separator behind a quoted value, got ", text_[at_]);
    return all;
  }

  std::string_view text_;
  char separator_;
  Place place_;
  std::size_t at_ = 0, line_ = 1;
};

/// `read(row)` of every row below that of the names.
template <class Read>
void for_each_row(Rows& rows, const Record& names, Read read) {
  for (Record row; rows.next(row);) {
    rows.place().require(row.size() == names.size(), "expected ", names.size(), " values, got ", row.size());
    read(std::move(row));
  }
}

std::vector<Record> parse_rows(std::string_view text, char separator, const std::string& name,
                               std::span<const std::string> fields) {
  Rows rows(text, separator, name);
  Record names;
  (void)rows.next(names);
  std::vector<std::size_t> columns;
  for (const std::string& field : fields) {
    const auto found = std::ranges::find(names, field);
    rows.place().require(found != names.end(), "expected a field ", field, ", got none; there are ", listed(names));
    columns.push_back(std::size_t(found - names.begin()));
  }
  std::vector<Record> records;
  for_each_row(rows, names, [&](Record row) {
    Record& record = records.emplace_back();
    for (const std::size_t column : columns) record.push_back(row[column]);
  });
  return records;
}

NamedRecords parse_all_rows(std::string_view text, char separator, const std::string& name) {
  Rows rows(text, separator, name);
  NamedRecords all;
  (void)rows.next(all.names);
  for_each_row(rows, all.names, [&](Record row) { all.rows.push_back(std::move(row)); });
  return all;
}
}  // namespace

std::vector<fs::path> files_below(const fs::path& path) {
  if (!is_folder(path)) return {path};
  std::vector<fs::path> files;
  std::error_code problem, none;  // none: what cannot be looked at, such as a link to itself, is no file
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, problem);
  for (; !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (hidden && entry->is_directory(none)) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file(none)) files.push_back(entry->path());
  }
  if (problem) throw Error("cannot read " + path.string() + ": " + problem.message());
  require(!files.empty(), "text", "expected files in ", path.string(), ", got none");
  std::sort(files.begin(), files.end());
  return files;
}

namespace {
enum class Kind { lines, commas, tabs };

Kind kind_of(const std::string& name) {
  std::string_view kind(name);
  if (kind.ends_with(".gz")) kind.remove_suffix(3);
  if (kind.ends_with(".jsonl") || kind.ends_with(".ndjson")) return Kind::lines;
  if (kind.ends_with(".tsv")) return Kind::tabs;
  if (!kind.ends_with(".csv")) throw Error(name + ": expected records in a file .jsonl, .csv or .tsv, got another");
  return Kind::commas;
}
char separator_of(Kind kind) { return kind == Kind::tabs ? '\t' : ','; }

/// Without the mark of UTF-8 that some programs write. Throws Error for what is not UTF-8.
std::string_view checked(std::string_view text, const std::string& name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (const std::size_t bad = first_not_utf8(text); bad != std::string_view::npos) {
    const auto line = std::size_t(1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(bad), '\n'));
    Place{name, line}.fail("expected UTF-8, got the byte ", int(static_cast<unsigned char>(text[bad])));
  }
  return text;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }
}  // namespace

std::vector<Record> parse_records(std::string_view text, const std::string& name, std::span<const std::string> fields) {
  const Kind kind = kind_of(name);
  text = checked(text, name);
  std::vector<Record> records;
  if (!is_blank(text))
    records = kind == Kind::lines ? parse_lines(text, name, fields) : parse_rows(text, separator_of(kind), name, fields);
  if (records.empty()) throw Error(name + ": expected records, got none");
  return records;
}

NamedRecords parse_all_records(std::string_view text, const std::string& name) {
  const Kind kind = kind_of(name);
  text = checked(text, name);
  NamedRecords all;
  if (!is_blank(text)) all = kind == Kind::lines ? parse_all_lines(text, name) : parse_all_rows(text, separator_of(kind), name);
  if (all.rows.empty()) throw Error(name + ": expected records, got none");
  std::vector<std::string> names = all.names;
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw Error(name + ": expected fields of different names, got two of the name " + *twice);
  return all;
}

NamedRecords read_all_records(const std::string& path) { return parse_all_records(read_file(path, kMostCorpusBytes), path); }

std::vector<Record> read_records(const std::string& path, std::span<const std::string> fields) {
  return parse_records(read_file(path, kMostCorpusBytes), path, fields);
}

std::vector<std::string> read_documents(const std::string& path, const std::string& field) {
  std::vector<std::string> documents;
  if (!field.empty()) {
    for (Record& record : read_records(path, std::span(&field, 1))) documents.push_back(std::move(record[0]));
    return documents;
  }
  std::size_t bytes = 0;
  for (const fs::path& file : files_below(path)) {
    documents.push_back(read_file(file, kMostCorpusBytes - bytes));
    bytes += documents.back().size();
  }
  return documents;
}

}  // namespace isomer
