#pragma once
// Texts and records in files: what models of one's own data are trained on.
//
//   std::vector<std::string> books = read_documents("books/", "");                    // a folder of texts
//   std::vector<std::string> posts = read_documents("posts.jsonl", "body");           // the field of every record
//   const std::vector<std::string> fields{"text", "label"};
//   std::vector<std::vector<std::string>> rows = read_records("mail.csv", fields);
//
// Records are JSON objects, one a line (.jsonl, .ndjson), or rows below a line of names (.csv with commas, .tsv with tabs; quotes
// as in RFC 4180). Numbers and booleans of JSON are read as they are written. Any file may be packed (.gz). Errors have the file
// and the line: "posts.jsonl:7: expected a field body, got none; there are id, title".
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isomer {

/// More than this is refused.
inline constexpr std::size_t kMostCorpusBytes = std::size_t{1} << 30;

/// The file, or the files of a folder and of those in it, without hidden ones, in the order of their paths. Throws Error when
/// there are none.
[[nodiscard]] std::vector<std::filesystem::path> files_below(const std::filesystem::path& path);

/// The bytes of a file, or of all files below a folder in the order of their paths, without hidden ones; with a field, that of
/// every record of a file. Throws Error when there is nothing, or too much.
[[nodiscard]] std::vector<std::string> read_documents(const std::string& path, const std::string& field);

/// For every record the fields in the order asked for. Throws Error for what is not UTF-8, not records, or lacks a field.
[[nodiscard]] std::vector<std::vector<std::string>> read_records(const std::string& path, std::span<const std::string> fields);

/// Records with all their fields, which are those of the first. What one of JSON lacks, or has as null, is empty.
struct NamedRecords {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // a value for each
};
/// Throws Error as read_records(), and where two fields have one name.
[[nodiscard]] NamedRecords read_all_records(const std::string& path);

/// The records of a text, whose name says what it is.
[[nodiscard]] std::vector<std::vector<std::string>> parse_records(std::string_view text, const std::string& name,
                                                                  std::span<const std::string> fields);
[[nodiscard]] NamedRecords parse_all_records(std::string_view text, const std::string& name);

}  // namespace isomer
