// What the shell looks at before it does what cannot be taken back.
#include "operator/io/action_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "operator/model/names.h"
#include "tests/support/recorded_transport.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

const std::string kPodPath = "/api/v1/namespaces/team-a/pods/digits-worker-0";
const std::string kRecordPath = "/apis/rekindle.dev/v1alpha1/namespaces/team-a/breakpoints/digits-1";
const std::string kJobPath = "/apis/batch.volcano.sh/v1alpha1/namespaces/team-a/jobs/digits";
const std::string kSecretsPath = "/api/v1/namespaces/rekindle-system/secrets";

Json live_pod(const std::string& uid, const std::string& job_uid, const std::string& label = "true") {
  return {{"metadata",
           {{"namespace", "team-a"},
            {"name", "digits-worker-0"},
            {"uid", uid},
            {"labels", {{names::kProtectedLabel, label}}},
            {"ownerReferences", Json::array({{{"apiVersion", names::kVolcanoApiVersion},
                                              {"kind", "Job"},
                                              {"name", "digits"},
                                              {"uid", job_uid},
                                              {"controller", true}}})}}}};
}

// Keeps what was sent, for requests whose guard stands in the body.
class BodiesKept final : public KubeTransport {
 public:
  explicit BodiesKept(KubeTransport& behind) : behind_(behind) {}

  Result<HttpResponse> send(const HttpRequest& request, std::stop_token stop) override {
    bodies_[request.method + " " + request.path] = request.body;
    return behind_.send(request, std::move(stop));
  }
  Result<HttpResponse> stream(const HttpRequest& request, const TransportSink& sink, std::stop_token stop) override {
    return behind_.stream(request, sink, std::move(stop));
  }

  // Of the last such request.
  Json metadata_of(const std::string& request) const {
    return parse_json(bodies_.at(request), "body").value().at("metadata");
  }

 private:
  KubeTransport& behind_;
  std::map<std::string, std::string> bodies_;
};

class ActionRunnerTest : public testing::Test {
 protected:
  ActionRunnerTest() {
    transport.prepare("POST " + kSecretsPath, 201, Json::object());
    transport.prepare("DELETE " + kPodPath, 200, Json::object());
    certificates = CertificateStore::open(transport, "rekindle-system", std::chrono::sys_seconds(1h));
  }

  ActionsDone run(Action action) {
    return ActionRunner(sent, *certificates, "test").run({"team-a", "digits"}, "j1", {std::move(action)});
  }

  ActionsDone delete_pod() {
    return run(DeletePod{.namespace_name = "team-a", .name = "digits-worker-0", .uid = "u0", .job_uid = "j1"});
  }

  bool was_asked(const std::string& request) const {
    const std::vector<std::string> requests = transport.requests();
    return std::ranges::count(requests, request) > 0;
  }

  RecordedTransport transport;
  BodiesKept sent{transport};
  Result<CertificateStore> certificates = fail(ErrorCode::internal, "not opened yet");
};

TEST_F(ActionRunnerTest, DeletesThePodThatWasDecidedAbout) {
  transport.prepare("GET " + kPodPath, 200, live_pod("u0", "j1"));
  const ActionsDone done = delete_pod();
  EXPECT_FALSE(done.error) << done.error->message;
  EXPECT_TRUE(was_asked("DELETE " + kPodPath));
  ASSERT_EQ(done.expectations.size(), 1u);
  EXPECT_EQ(done.expectations[0].kind, Expectation::Kind::pod_going);
}

TEST_F(ActionRunnerTest, APodThatBelongsToAnotherJobByNowIsLeftAlone) {
  transport.prepare("GET " + kPodPath, 200, live_pod("u0", "j2"));
  const ActionsDone done = delete_pod();
  EXPECT_FALSE(was_asked("DELETE " + kPodPath));
  ASSERT_TRUE(done.error);
  EXPECT_EQ(done.error->code, ErrorCode::refused);
}

TEST_F(ActionRunnerTest, APodThatHasLostItsLabelIsLeftAlone) {
  transport.prepare("GET " + kPodPath, 200, live_pod("u0", "j1", "false"));
  EXPECT_TRUE(delete_pod().error);
  EXPECT_FALSE(was_asked("DELETE " + kPodPath));
}

TEST_F(ActionRunnerTest, APodThatWasMadeAnewUnderTheNameIsLeftAlone) {
  transport.prepare("GET " + kPodPath, 200, live_pod("u9", "j1"));
  EXPECT_FALSE(delete_pod().error);
  EXPECT_FALSE(was_asked("DELETE " + kPodPath));
}

// Somebody was faster between our look and the delete: a conflict says that the uid is another one
// by now.
TEST_F(ActionRunnerTest, APodThatWentMeanwhileIsDeletedAsWasDecided) {
  transport.prepare("GET " + kPodPath, 200, live_pod("u0", "j1"));
  for (const auto& [status, reason] : {std::pair(404, "NotFound"), std::pair(409, "Conflict")}) {
    transport.prepare("DELETE " + kPodPath, status, {{"kind", "Status"}, {"code", status}, {"reason", reason}});
    const ActionsDone done = delete_pod();
    EXPECT_FALSE(done.error) << reason << ": " << done.error->message;
    EXPECT_EQ(done.expectations.size(), 1u) << reason;
  }
}

TEST_F(ActionRunnerTest, APodThatCannotBeDeletedIsAnError) {
  transport.prepare("GET " + kPodPath, 200, live_pod("u0", "j1"));
  transport.prepare("DELETE " + kPodPath, 403, {{"kind", "Status"}, {"code", 403}, {"reason", "Forbidden"}});
  const ActionsDone done = delete_pod();
  ASSERT_TRUE(done.error);
  EXPECT_TRUE(done.expectations.empty()) << "the pod stays as it is";
}

TEST_F(ActionRunnerTest, ARecordThatWasMadeAnewIsNoConflict) {
  transport.prepare("DELETE " + kRecordPath, 409, {{"kind", "Status"}, {"code", 409}, {"reason", "Conflict"}});
  EXPECT_FALSE(run(DeleteBreakpoint{.namespace_name = "team-a", .name = "digits-1", .uid = "b1"}).error);
}

// What was planned on an older view is planned anew on a newer one; nothing of it counts as done.
TEST_F(ActionRunnerTest, AStatusThatAnotherChangedFirstIsAConflict) {
  transport.prepare("PATCH " + kRecordPath + "/status", 409,
                    {{"kind", "Status"}, {"code", 409}, {"reason", "Conflict"}});
  const ActionsDone done = run(WriteBreakpointStatus{
      .namespace_name = "team-a", .name = "digits-1", .uid = "b1", .resource_version = "7", .status = {}});
  ASSERT_TRUE(done.error);
  EXPECT_EQ(done.error->code, ErrorCode::conflict);
  EXPECT_TRUE(done.expectations.empty());
}

// The API server compares it with its own: whoever decided on an older one hears of a conflict.
TEST_F(ActionRunnerTest, AStatusIsWrittenToTheVersionThatWasDecidedOn) {
  const std::string request = "PATCH " + kRecordPath + "/status";
  transport.prepare(request, 200, Json::object());
  run(WriteBreakpointStatus{
      .namespace_name = "team-a", .name = "digits-1", .uid = "b1", .resource_version = "7", .status = {}});
  EXPECT_EQ(sent.metadata_of(request), (Json{{"uid", "b1"}, {"resourceVersion", "7"}}));
}

TEST_F(ActionRunnerTest, TheLastCheckpointIsWrittenToTheJobThatMadeItAndNoOther) {
  const std::string request = "PATCH " + kJobPath;
  transport.prepare(request, 200, Json::object());
  run(AnnotateLastCheckpoint{
      .namespace_name = "team-a", .job_name = "digits", .job_uid = "j1", .pod_group_name = "digits-j1"});
  EXPECT_EQ(sent.metadata_of(request).value("uid", "none"), "j1");
}

TEST_F(ActionRunnerTest, AnEventThatCannotBeRecordedHoldsUpNothing) {
  transport.prepare("POST /apis/events.k8s.io/v1/namespaces/team-a/events", 403,
                    {{"kind", "Status"}, {"code", 403}, {"reason", "Forbidden"}});
  transport.prepare("GET " + kPodPath, 200, live_pod("u0", "j1"));
  const RecordEvent event{
      .reason = "Restarting", .regarding = {.namespace_name = "team-a", .name = "digits"}, .once_key = "once"};
  const DeletePod deletion{.namespace_name = "team-a", .name = "digits-worker-0", .uid = "u0", .job_uid = "j1"};
  const ActionsDone done =
      ActionRunner(transport, *certificates, "test").run({"team-a", "digits"}, "j1", {event, deletion});
  EXPECT_FALSE(done.error) << done.error->message;
  EXPECT_TRUE(was_asked("DELETE " + kPodPath));
  EXPECT_EQ(done.events_recorded, std::vector<std::string>{}) << "it may be tried again";
}

// The job is another one by now: its own annotations are left alone, and nothing is repeated.
TEST_F(ActionRunnerTest, TheLastCheckpointOfAJobThatWasMadeAnewIsNoConflict) {
  transport.prepare("PATCH " + kJobPath, 409, {{"kind", "Status"}, {"code", 409}, {"reason", "Conflict"}});
  EXPECT_FALSE(
      run(AnnotateLastCheckpoint{
              .namespace_name = "team-a", .job_name = "digits", .job_uid = "j1", .pod_group_name = "digits-j1"})
          .error);
}

TEST_F(ActionRunnerTest, AnObjectWithoutANameIsAnErrorOfItsAction) {
  const ActionsDone done = ActionRunner(transport, *certificates, "test")
                               .run({"team-a", ""}, "j1", {DeletePod{.namespace_name = "team-a", .uid = "u0"}});
  ASSERT_TRUE(done.error);
  EXPECT_EQ(done.error->code, ErrorCode::invalid_input);
}

}  // namespace
}  // namespace rekindle::op
