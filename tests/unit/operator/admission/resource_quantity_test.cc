#include "operator/admission/resource_quantity.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

TEST(ResourceQuantity, ReadsWhatKubernetesWrites) {
  EXPECT_EQ(resource_quantity("0"), 0.0);
  EXPECT_EQ(resource_quantity("2"), 2.0);
  EXPECT_EQ(resource_quantity("0.5"), 0.5);
  EXPECT_EQ(resource_quantity(".5"), 0.5);
  EXPECT_EQ(resource_quantity("250m"), 250 * 1e-3);
  EXPECT_EQ(resource_quantity("64Mi"), 64.0 * 1024 * 1024);
  EXPECT_EQ(resource_quantity("1E"), 1e18);
  EXPECT_EQ(resource_quantity("1E3"), 1e3);
  EXPECT_EQ(resource_quantity("1e+3"), 1e3);
  EXPECT_EQ(resource_quantity("5e-1"), 0.5);
}

TEST(ResourceQuantity, RefusesWhatIsNone) {
  for (const char* text : {"", "lots", "-1", "+1", "1 Gi", "256MB", "256mi", "1.2.3", ".", "inf", "nan", "0x10", "1e",
                           "1e3Mi", "1e99999", "1ee3", "Mi"}) {
    EXPECT_EQ(resource_quantity(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace rekindle::op
