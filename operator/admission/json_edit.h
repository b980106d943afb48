// Edits a JSON document and writes down each edit as an RFC 6902 operation, so that the patch and
// its effect cannot differ. Adds instead of replacing wherever it can: other webhooks patch the
// same object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rekindle::op {

class JsonEdit {
 public:
  explicit JsonEdit(nlohmann::json document) : document_(std::move(document)) {}

  const nlohmann::json& document() const { return document_; }

  // The value at a pointer, or null when it is absent or null.
  const nlohmann::json* find(const std::string& pointer) const;

  // Sets a member of an object, or inserts into an array (index, or "-" for the end). The parent
  // must be there: our own bug otherwise.
  void add(const std::string& pointer, nlohmann::json value);
  void replace(const std::string& pointer, nlohmann::json value);
  void remove(const std::string& pointer);

  // Nothing when the value is there already, else replace or add.
  void set(const std::string& pointer, nlohmann::json value);

  // An empty container of that kind where nothing is.
  void ensure(const std::string& pointer, nlohmann::json empty);

  nlohmann::json take_operations() { return std::move(operations_); }

 private:
  void record(std::string_view operation, const std::string& pointer, const nlohmann::json* value);

  nlohmann::json document_;
  nlohmann::json operations_ = nlohmann::json::array();
};

// A name as a part of a pointer: "a/b" -> "a~1b".
std::string pointer_part(std::string_view name);

}  // namespace rekindle::op
