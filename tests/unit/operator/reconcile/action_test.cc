#include "operator/reconcile/action.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

TEST(ActionText, SaysEnoughForALogLine) {
  EXPECT_EQ(to_text(DeletePod{.namespace_name = "a", .name = "p", .uid = "u", .job_uid = "j", .why = "broken"}),
            "delete pod p uid=u grace=own why=\"broken\"");
  EXPECT_EQ(to_text(CreateCertificateSecret{.name = "s"}), "create secret s");
  EXPECT_EQ(to_text(SyncOrder{.breakpoint = "b", .seconds_left = 30}),
            "order b cause=operator after=park seconds_left=30");
}

}  // namespace
}  // namespace rekindle::op
