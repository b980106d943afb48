// The schema in crds/ and the code say the same: every field that is written is in it, every enum
// has the same words.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "operator/model/breakpoint.h"
#include "tests/support/source_folder.h"
#include "tests/unit/operator/model/yaml.h"

namespace rekindle::op {
namespace {

const std::string kFolder = test::source_path("crds/");

Json schema() {
  return read_yaml(kFolder + "breakpoints.yaml").at(0)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

// Checks names, types, enums and lengths against the schema; what is wrong comes back by path.
void check(const Json& value, const Json& rules, const std::string& path, std::vector<std::string>& wrong) {
  const std::string type = rules.at("type").get<std::string>();
  if (type == "object") {
    if (!value.is_object()) return wrong.push_back(path + " is no object");
    if (!rules.contains("properties")) return;
    for (const auto& [name, entry] : value.items()) {
      if (rules["properties"].contains(name)) {
        check(entry, rules["properties"][name], path + "." + name, wrong);
      } else {
        wrong.push_back(path + "." + name + " would be pruned");
      }
    }
    for (const Json& name : rules.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>()))
        wrong.push_back(path + "." + name.get<std::string>() + " is required");
    }
  } else if (type == "array") {
    if (!value.is_array()) return wrong.push_back(path + " is no list");
    for (const Json& entry : value) check(entry, rules["items"], path + "[]", wrong);
  } else if (type == "integer") {
    if (!value.is_number_integer()) wrong.push_back(path + " is no integer");
  } else {
    if (!value.is_string()) return wrong.push_back(path + " is no text");
    const Json words = rules.value("enum", Json());
    if (words.is_array() && std::find(words.begin(), words.end(), value) == words.end())
      wrong.push_back(path + " has no word " + value.dump());
  }
}

void describe(const Json& rules, const std::string& path, std::vector<std::string>& bare) {
  const Json properties = rules.value("properties", Json::object());
  for (const auto& [name, entry] : properties.items()) {
    const bool standard = path.empty() && (name == "apiVersion" || name == "kind" || name == "metadata");
    if (!standard && !entry.contains("description")) bare.push_back(path + "." + name);
    // A comma in a text that is not quoted makes a key of the rest.
    for (const auto& [key, value] : entry.items()) {
      if (key.find(' ') != std::string::npos) bare.push_back(path + "." + name + " has the key \"" + key + "\"");
    }
    describe(entry, path + "." + name, bare);
    if (entry.contains("items")) describe(entry["items"], path + "." + name + "[]", bare);
  }
}

TEST(BreakpointSchema, HasEveryFieldThatIsWritten) {
  Breakpoint full{.namespace_name = "n", .name = "b", .owner_uid = "j"};
  full.spec = {.job_name = "digits",
               .job_uid = "j",
               .reason = "r",
               .attempt = 1,
               .broken = PodRef{"p", "u"},
               .pods = {{"p", "u"}}};
  full.status = {.state = BreakpointState::restored,
                 .attempt = 1,
                 .step = 2,
                 .ranks_saved = 3,
                 .ranks_expected = 4,
                 .bytes = 5,
                 .agreed_milliseconds = 6,
                 .durable_milliseconds = 7,
                 .path = "p",
                 .manifest_hash = "h",
                 .restart_time = WallTime{},
                 .restored_attempt = 8,
                 .restored_step = 9,
                 .first_step = 10,
                 .message = "m"};
  set_condition(full.status, "Durable", "True", "Published", "m", WallTime{});
  Json object = breakpoint_to_json(full);
  object["status"] = breakpoint_status_to_json(full.status, 1);
  std::vector<std::string> wrong;
  check(object, schema(), "", wrong);
  EXPECT_EQ(wrong, std::vector<std::string>{});
}

TEST(BreakpointSchema, HasTheSameWordsAsTheCode) {
  const Json rules = schema();
  std::set<std::string> triggers, states;
  for (int i = 0; i <= static_cast<int>(Trigger::other); ++i) triggers.emplace(to_string(static_cast<Trigger>(i)));
  for (int i = 0; i <= static_cast<int>(BreakpointState::ended); ++i)
    states.emplace(to_string(static_cast<BreakpointState>(i)));
  EXPECT_EQ(rules["properties"]["spec"]["properties"]["trigger"]["enum"].get<std::set<std::string>>(), triggers);
  EXPECT_EQ(rules["properties"]["status"]["properties"]["state"]["enum"].get<std::set<std::string>>(), states);
}

TEST(BreakpointSchema, IsTheOneThatTheChartInstalls) {
  EXPECT_EQ(read_yaml(kFolder + "breakpoints.yaml"),
            read_yaml(test::source_path("helm/rekindle/files/crds/breakpoints.yaml")))
      << "copy crds/breakpoints.yaml to helm/rekindle/files/crds";
}

TEST(BreakpointSchema, ExplainsEveryField) {
  std::vector<std::string> bare;
  describe(schema(), "", bare);
  EXPECT_EQ(bare, std::vector<std::string>{});
}

TEST(BreakpointSchema, TakesTheSamplesAndTheCodeReadsThem) {
  int samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "samples")) {
    for (const Json& document : read_yaml(entry.path())) {
      std::vector<std::string> wrong;
      check(document, schema(), "", wrong);
      EXPECT_EQ(wrong, std::vector<std::string>{}) << entry.path();
      EXPECT_TRUE(breakpoint_from_json(document)) << entry.path();
      ++samples;
    }
  }
  EXPECT_GE(samples, 2);
}

}  // namespace
}  // namespace rekindle::op
