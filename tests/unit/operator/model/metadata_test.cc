#include "operator/model/metadata.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

TEST(Metadata, ANameIsAllThatIsRequired) {
  EXPECT_EQ(metadata_from_json(Json::parse(R"({"metadata":{"name":"a"}})"), "pod")->name, "a");
  EXPECT_EQ(metadata_from_json(Json::parse(R"({"metadata":{}})"), "pod").error().message,
            "pod metadata: name is missing");
  EXPECT_EQ(metadata_from_json(Json::parse("7"), "pod").error().message, "pod must be a JSON object");
}

TEST(Metadata, TheControllerIsTheOneThatSaysSo) {
  const Json pod = Json::parse(R"({"metadata":{"ownerReferences":[{"kind":"ReplicaSet","uid":"1"},
      {"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","name":"j","uid":"2","controller":true}]}})");
  EXPECT_EQ(controller_of(pod)->uid, "2");
  EXPECT_FALSE(controller_of(Json::parse(R"({"metadata":{"ownerReferences":"none"}})")));
  EXPECT_FALSE(controller_of(Json::parse(R"({"metadata":{"ownerReferences":[{"controller":true,"uid":7}]}})")));
}

TEST(Metadata, AnnotationsThatAreNoTextCountAsAbsent) {
  const Json object = Json::parse(R"({"metadata":{"annotations":{"a":"x","b":7}}})");
  EXPECT_EQ(metadata_value(object, "annotations", "a"), "x");
  EXPECT_EQ(metadata_value(object, "annotations", "b"), "");
  EXPECT_EQ(metadata_value(object, "labels", "a"), "");
}

}  // namespace
}  // namespace rekindle::op
