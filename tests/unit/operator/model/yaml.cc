#include "tests/unit/operator/model/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>

namespace rekindle::op {
namespace {

Json to_json(const YAML::Node& node) {
  if (node.IsNull()) return nullptr;
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& entry : node) list.push_back(to_json(entry));
    return list;
  }
  if (node.IsMap()) {
    Json map = Json::object();
    for (const auto& entry : node) map[entry.first.Scalar()] = to_json(entry.second);
    return map;
  }
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true" || text == "false") return text == "true";
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return text;
}

}  // namespace

std::vector<Json> read_yaml(const std::string& path) {
  std::vector<Json> documents;
  for (const YAML::Node& node : YAML::LoadAllFromFile(path)) documents.push_back(to_json(node));
  return documents;
}

Json parse_yaml(const std::string& text) { return to_json(YAML::Load(text)); }

}  // namespace rekindle::op
