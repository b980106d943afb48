// Each message in its exact text, there and back, and what is refused.
#include <gtest/gtest.h>

#include <vector>

#include "common/base/json_fields.h"
#include "common/base/prng.h"
#include "tests/support/random_seed.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle {
namespace {

const std::string kHash = "0123456789abcdef0123456789abcdef";

const TriggerMessage kTrigger{.term = 65536,
                              .cause = TriggerCause::hook,
                              .pod = 1,
                              .detail = "main",
                              .seconds_left = 30,
                              .after = AfterBreakpoint::park,
                              .breakpoint = "b-1"};
const WrittenFile kFile{.file = "rank-1.safetensors",
                        .bytes = 96,
                        .hash = kHash,
                        .entries = {{"w[0:2]", "w", 0, 2, 64, 96}},
                        .way = "queued"};

const std::uint64_t kPeriodic = make_periodic_term(1, 1);

struct LocalCase {
  LocalMessage message;
  std::string body;
};

std::vector<LocalCase> local_cases() {
  const Error full{ErrorCode::exhausted, "the volume is full", Retry::no};
  return {
      {HelloMessage{1, 4, 77, 65536, "0.1.0", 3, true},
       R"({"library_version":"0.1.0","pid":77,"rank":1,"rebuilds":true,"state_bytes_max":65536,"term":3,"world_size":4})"},
      {ControlMessage{4096, 9, "/rekindle/checkpoints", 8},
       R"({"checkpoint_dir":"/rekindle/checkpoints","incarnation":9,"ranks_here":8,"slot_bytes":4096})"},
      {WelcomeMessage{}, "{}"},
      {RegisteredMessage{{{whole_tensor("w", Dtype::f32, {4, 2})}}, {{"sampler", 16}, {"loader", 64, true}}, true},
       R"({"late":true,"states":[{"bytes":16,"name":"sampler"},{"bytes":64,"name":"loader","variable":true}],"tensors":[{"dtype":"F32","global_shape":[4,2],"name":"w","offset":[0,0],"shape":[4,2],"written_in":"update"}]})"},
      {OfferMessage{"a1-s184-x", 184, kHash, true},
       R"({"job_checked":true,"manifest_hash":")" + kHash + R"(","path":"a1-s184-x","step":184})"},
      {LoadedMessage{"a1-s184-x", 184, false, full, false},
       R"({"error":{"code":"exhausted","message":"the volume is full","retry":false},"ok":false,"path":"a1-s184-x","state_missing":false,"step":184})"},
      {TakeMessage{2, "a1-s184-x", 184, kHash, CheckpointSummary{1024, 4, 3, 6}},
       R"({"attempt":2,"manifest_hash":")" + kHash +
           R"(","path":"a1-s184-x","step":184,"summary":{"agreed_milliseconds":6,"bytes":1024,"live_ranks":3,"world_size":4}})"},
      {WriteMessage{65536, 3, 185, "a2-s185-y", "rank-1.safetensors", {{"w", 0, 2}}},
       R"({"file":"rank-1.safetensors","hold":3,"path":"a2-s185-y","pieces":[{"begin_row":0,"end_row":2,"tensor":"w"}],"step":185,"term":65536})"},
      {WrittenMessage{65536, kFile},
       R"({"bytes":96,"entries":[{"begin_byte":64,"begin_row":0,"end_byte":96,"end_row":2,"key":"w[0:2]","tensor":"w"}],"file":"rank-1.safetensors","hash":")" +
           kHash + R"(","term":65536,"way":"queued"})"},
      {WriteFailedMessage{65536, full},
       R"({"error":{"code":"exhausted","message":"the volume is full","retry":false},"term":65536})"},
      {CollectiveFailedMessage{184, "ring broken", 65536}, R"({"rebuilt":65536,"step":184,"why":"ring broken"})"},
      {CheckpointWantedMessage{184}, R"({"step":184})"},
      {FinishedMessage{143}, R"({"exit_code":143})"},
      {EndMessage{143}, R"({"exit_code":143})"},
      {RefusedMessage{full}, R"({"error":{"code":"exhausted","message":"the volume is full","retry":false}})"},
      {StatusMessage{R"({"phase":"training"})"}, R"({"phase":"training"})"},
      {HookMessage{"main", 27.5}, R"({"container":"main","seconds_left":27.5})"},
      {HookDoneMessage{HookOutcome::durable, 185, "a2-s185-y", 31, "step 185 is durable"},
       R"({"message":"step 185 is durable","milliseconds":31,"outcome":"durable","path":"a2-s185-y","step":185})"},
      {KeepMessage{7}, R"({"serial":7})"},
      {KeptMessage{7, false, full},
       R"({"error":{"code":"exhausted","message":"the volume is full","retry":false},"ok":false,"serial":7})"},
      {SnapshottedMessage{500, 31}, R"({"microseconds":31,"ok":true,"step":500})"},
      {RebuiltMessage{65536, 184}, R"({"step":184,"term":65536})"},
      {CheckpointDoneMessage{184, HookOutcome::durable, 185, "a2-s185-y", "step 185 is durable"},
       R"({"message":"step 185 is durable","outcome":"durable","path":"a2-s185-y","requested":184,"step":185})"},
  };
}

struct PeerCase {
  PeerMessage message;
  std::string body;
};

std::vector<PeerCase> peer_cases() {
  const std::string trigger =
      R"({"after":"park","breakpoint":"b-1","cause":"hook","detail":"main","pod":1,"seconds_left":30.0,"term":65536})";
  PodWrittenMessage written{.term = 65536,
                            .ordinal = 1,
                            .ok = true,
                            .ranks = {{1, kFile}},
                            .states_file = {"state-1.safetensors", 80, kHash, {}}};
  written.states = {{1, "sampler", "state-1.safetensors", "state/1/sampler", 16, 64, 80}};
  written.inexact_ranks = {3};
  return {
      {PeerHelloMessage{"job-1", "pod-1", 1, 2, "0.1.0"},
       R"({"job_uid":"job-1","ordinal":1,"pod_uid":"pod-1","pods":2,"version":"0.1.0"})"},
      {ReadyMessage{1, {{1, ReadyState::loaded}}, kHash, 0, 184, "a1-s184-x", kHash},
       R"({"attempt":0,"layout_hash":")" + kHash + R"(","manifest_hash":")" + kHash +
           R"(","ordinal":1,"path":"a1-s184-x","ranks":[{"rank":1,"state":"loaded"}],"step":184})"},
      {BeginMessage{}, "{}"},
      {OfferMessage{"", 0, ""}, R"({"manifest_hash":"","path":"","step":0})"},
      {PodLoadedMessage{1, "a1-s184-x", 184, true, {}}, R"({"ok":true,"ordinal":1,"path":"a1-s184-x","step":184})"},
      {TakeMessage{2, "", 0, "", {}}, R"({"attempt":2,"manifest_hash":"","path":"","step":0})"},
      {kTrigger, trigger},
      {CollectMessage{131072, kTrigger}, R"({"term":131072,"trigger":)" + trigger + "}"},
      {CollectedMessage{131072, 1, {{1, true, true, 184, RankPhase::computing}}},
       R"({"ordinal":1,"ranks":[{"alive":true,"clean":true,"phase":"computing","rank":1,"step":184}],"term":131072})"},
      {PermitMessage{131072, 185, {0, 1}}, R"({"ranks":[0,1],"step":185,"term":131072})"},
      {AssignMessage{131072, 185, "a2-s185-y", {{1, "rank-1.safetensors", {{"w", 0, 2}}, 0}}},
       R"({"path":"a2-s185-y","step":185,"term":131072,"writers":[{"file":"rank-1.safetensors","pieces":[{"begin_row":0,"end_row":2,"tensor":"w"}],"rank":1}]})"},
      {written,
       R"({"failed_ranks":[],"inexact_ranks":[3],"ok":true,"ordinal":1,"ranks":[{"bytes":96,"entries":[{"begin_byte":64,"begin_row":0,"end_byte":96,"end_row":2,"key":"w[0:2]","tensor":"w"}],"file":"rank-1.safetensors","hash":")" +
           kHash +
           R"(","rank":1,"way":"queued"}],"states":[{"begin_byte":64,"bytes":16,"end_byte":80,"file":"state-1.safetensors","key":"state/1/sampler","name":"sampler","rank":1}],"states_file":{"bytes":80,"hash":")" +
           kHash + R"(","name":"state-1.safetensors"},"term":65536})"},
      {CommittedMessage{131072, 185, "a2-s185-y", kHash, AfterBreakpoint::stop, 1024, 0.5},
       R"({"after":"stop","bytes":1024,"manifest_hash":")" + kHash +
           R"(","path":"a2-s185-y","seconds":0.5,"step":185,"term":131072})"},
      {FailedMessage{131072, {ErrorCode::deadline_exceeded, "too late", Retry::no}, AfterBreakpoint::go_on},
       R"({"after":"go_on","error":{"code":"deadline_exceeded","message":"too late","retry":false},"term":131072})"},
      {PodFinishedMessage{1}, R"({"ordinal":1})"},
      {LayoutsMessage{1, {{kHash, {2, 3}, {{{whole_tensor("w", Dtype::f32, {4})}}}}}},
       R"({"layouts":[{"hash":")" + kHash +
           R"(","ranks":[2,3],"tensors":[{"dtype":"F32","global_shape":[4],"name":"w","offset":[0],"shape":[4],"written_in":"update"}]}],"ordinal":1})"},
      {PeerKeepMessage{kPeriodic, true, 2, {.rank = 1, .file = "rank-1.safetensors", .pieces = {{"w", 0, 2}}}},
       R"({"file":"rank-1.safetensors","pieces":[{"begin_row":0,"end_row":2,"tensor":"w"}],"rank":1,"shadow_every_steps":2,"snapshots":true,"term":9223372036854841345})"},
      {PeerKeptMessage{kPeriodic, 1, true, {}}, R"({"ok":true,"rank":1,"term":9223372036854841345})"},
      {SnapshotMessage{kPeriodic, 500}, R"({"step":500,"term":9223372036854841345})"},
      {PodSnapshottedMessage{kPeriodic, 1, SnapshotOutcome::missed, 0, {}},
       R"({"microseconds":0,"ordinal":1,"outcome":"missed","term":9223372036854841345})"},
  };
}

Error refusal_of(std::uint16_t number, std::string_view body) {
  if (number > 100) {
    const auto message = decode_peer_message(number, body);
    EXPECT_FALSE(message.has_value()) << body;
    return message ? Error{} : message.error();
  }
  const auto message = decode_local_message(number, body);
  EXPECT_FALSE(message.has_value()) << body;
  return message ? Error{} : message.error();
}

TEST(LocalMessages, OfEachKindHaveExactlyThisText) {
  std::uint16_t kind = 1;
  for (const LocalCase& test : local_cases()) {
    const EncodedMessage encoded = encode_local_message(test.message);
    EXPECT_EQ(encoded.kind, kind++);
    EXPECT_EQ(encoded.body, test.body);
  }
  EXPECT_EQ(kind, 24) << "every kind is there";
}

TEST(LocalMessages, OfALibraryThatKnowsOfNoRebuildingMeanThatItCannot) {
  const auto hello = decode_local_message(
      1, R"({"library_version":"0.1.0","pid":77,"rank":1,"state_bytes_max":65536,"world_size":4})");
  EXPECT_FALSE(std::get<HelloMessage>(*hello).rebuilds);
  EXPECT_EQ(encode_local_message(HelloMessage{.rank = 1, .world_size = 4}).body.find("rebuilds"), std::string::npos)
      << "an older sidecar reads what it always read";
  EXPECT_EQ(encode_local_message(CollectiveFailedMessage{.step = 1}).body.find("rebuilt"), std::string::npos);
}

TEST(LocalMessages, ComeBackAsTheyWere) {
  for (const LocalCase& test : local_cases()) {
    const auto decoded = decode_local_message(local_kind_of(test.message), test.body);
    ASSERT_TRUE(decoded.has_value()) << test.body << ": " << decoded.error().message;
    EXPECT_EQ(*decoded, test.message) << test.body;
  }
}

TEST(PeerMessages, WhetherARankCanRebuildIsLeftOutWhenItCannot) {
  CollectedMessage collected{131072, 1, {{1, true, true, 184, RankPhase::computing}}};
  const auto text = [&] { return encode_peer_message(collected).body; };
  EXPECT_EQ(text().find("rebuild"), std::string::npos);
  collected.ranks[0].rebuilds = true;
  collected.ranks[0].rebuild_term = 65536;
  EXPECT_NE(text().find(R"("rebuild_term":65536,"rebuilds":true)"), std::string::npos) << text();
  EXPECT_EQ(std::get<CollectedMessage>(*decode_peer_message(109, text())), collected);
}

TEST(PeerMessages, RebuildIsHowABreakpointEndsAndNothingThatIsAskedFor) {
  const CommittedMessage committed{131072, 185, "a2-s185-y", kHash, AfterBreakpoint::rebuild, 1024, 0.5};
  EXPECT_EQ(std::get<CommittedMessage>(*decode_peer_message(113, encode_peer_message(committed).body)), committed);
  EXPECT_FALSE(parse_after_breakpoint("rebuild").has_value());
  EXPECT_FALSE(
      decode_peer_message(
          107, R"({"after":"rebuild","breakpoint":"","cause":"hook","detail":"","pod":1,"seconds_left":30.0,"term":0})")
          .has_value());
  EXPECT_FALSE(
      decode_peer_message(114, R"({"after":"rebuild","error":{"code":"io","message":"x","retry":false},"term":131072})")
          .has_value())
      << "without a checkpoint there is no step to rebuild at";
}

TEST(PeerMessages, OfEachKindHaveExactlyThisText) {
  std::uint16_t kind = 101;
  for (const PeerCase& test : peer_cases()) {
    const EncodedMessage encoded = encode_peer_message(test.message);
    EXPECT_EQ(encoded.kind, kind++);
    EXPECT_EQ(encoded.body, test.body);
  }
  EXPECT_EQ(kind, 121) << "every kind is there";
}

TEST(PeerMessages, ComeBackAsTheyWere) {
  for (const PeerCase& test : peer_cases()) {
    const auto decoded = decode_peer_message(peer_kind_of(test.message), test.body);
    ASSERT_TRUE(decoded.has_value()) << test.body << ": " << decoded.error().message;
    EXPECT_EQ(*decoded, test.message) << test.body;
  }
}

// Fields that only jobs with different ranks have.
std::vector<PeerCase> sharded_peer_cases() {
  const Layout layout{{TensorDescription{"w", Dtype::f32, {2, 2}, {4, 2}, {2, 0}}}};
  const std::string tensors =
      R"([{"dtype":"F32","global_shape":[4,2],"name":"w","offset":[2,0],"shape":[2,2],"written_in":"update"}])";
  const HeldLayout known{kHash, {0, 2}, {}};
  const HeldLayout told{kHash, {1, 3}, layout};
  return {
      {ReadyMessage{1, {{1, ReadyState::registered}}, "", 0, 0, "", "", {told}},
       R"({"attempt":0,"layout_hash":"","layouts":[{"hash":")" + kHash + R"(","ranks":[1,3],"tensors":)" + tensors +
           R"(}],"manifest_hash":"","ordinal":1,"path":"","ranks":[{"rank":1,"state":"registered"}],"step":0})"},
      {BeginMessage{{kHash}, {known}},
       R"({"layout_hashes":[")" + kHash + R"("],"layouts":[{"hash":")" + kHash + R"(","ranks":[0,2]}]})"},
      {CollectMessage{131072, kTrigger, kHash, {kHash}},
       R"({"job_layout_hash":")" + kHash + R"(","layout_hashes":[")" + kHash +
           R"("],"term":131072,"trigger":{"after":"park","breakpoint":"b-1","cause":"hook","detail":"main","pod":1,"seconds_left":30.0,"term":65536}})"},
      {CollectedMessage{131072, 1, {{1, false, false, 184, RankPhase::updating, {180, 184}}}, {known}, true},
       R"({"layouts":[{"hash":")" + kHash +
           R"(","ranks":[0,2]}],"more":true,"ordinal":1,"ranks":[{"alive":false,"clean":false,"phase":"updating","rank":1,"shadow_steps":[180,184],"step":184}],"term":131072})"},
      {AssignMessage{131072, 185, "a2-s185-y", {{1, "rank-1.safetensors", {{"w", 0, 2}}, 0, WriteSource::shadow}}},
       R"({"path":"a2-s185-y","step":185,"term":131072,"writers":[{"file":"rank-1.safetensors","pieces":[{"begin_row":0,"end_row":2,"tensor":"w"}],"rank":1,"source":"shadow"}]})"},
      {AssignMessage{131072, 185, "a2-s185-y", {{1, "rank-1.safetensors", {}}}, 8},
       R"({"path":"a2-s185-y","step":185,"term":131072,"writers":[{"file":"rank-1.safetensors","pieces":[],"rank":1}],"writers_in_all":8})"},
  };
}

TEST(PeerMessages, OfJobsWithDifferentRanksHaveExactlyThisTextAndComeBack) {
  for (const PeerCase& test : sharded_peer_cases()) {
    const EncodedMessage encoded = encode_peer_message(test.message);
    EXPECT_EQ(encoded.body, test.body);
    const auto decoded = decode_peer_message(encoded.kind, test.body);
    ASSERT_TRUE(decoded.has_value()) << test.body << ": " << decoded.error().message;
    EXPECT_EQ(*decoded, test.message) << test.body;
  }
}

TEST(PeerMessages, RefuseShadowStepsAndSourcesThatMakeNoSense) {
  const auto collected = [](const std::string& steps) {
    return R"({"term":1,"ordinal":0,"ranks":[{"rank":0,"alive":true,"clean":true,"step":2,"phase":"between","shadow_steps":)" +
           steps + "}]}";
  };
  EXPECT_TRUE(decode_peer_message(109, collected("[2,1]")).has_value());
  for (const char* steps :
       {"[-1]", R"(["2"])", "[281474976710656]", "2", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]"}) {
    EXPECT_FALSE(decode_peer_message(109, collected(steps)).has_value()) << steps;
  }
  EXPECT_FALSE(
      decode_peer_message(
          111, R"({"term":1,"step":2,"path":"a","writers":[{"rank":0,"file":"f","pieces":[],"source":"hope"}]})")
          .has_value());
  EXPECT_FALSE(decode_peer_message(103, R"({"layout_hashes":["x"]})").has_value());
}

TEST(Messages, IgnoreFieldsOfALaterMinorVersion) {
  EXPECT_TRUE(decode_local_message(13, R"({"exit_code":0,"colour":"green"})").has_value());
}

TEST(Messages, SayWhatAnEarlierVersionDidNotAsFarAsCanBe) {
  const auto control = decode_local_message(2, R"({"checkpoint_dir":"/c","incarnation":9,"slot_bytes":4096})");
  ASSERT_TRUE(control.has_value()) << control.error().message;
  EXPECT_EQ(std::get<ControlMessage>(*control).ranks_here, 1u);
  const auto written = decode_local_message(
      9, R"({"bytes":96,"entries":[],"file":"rank-1.safetensors","hash":")" + kHash + R"(","term":1})");
  ASSERT_TRUE(written.has_value()) << written.error().message;
  EXPECT_EQ(std::get<WrittenMessage>(*written).written.way, "");
}

TEST(Messages, OfAnUnknownKindAreNamedSoThatTheyCanBeSkipped) {
  EXPECT_EQ(decode_local_message(99, "{}").error().code, ErrorCode::not_found);
  EXPECT_EQ(decode_peer_message(199, "{}").error().code, ErrorCode::not_found);
}

TEST(Messages, NameTheFieldThatIsMissingOrOfTheWrongType) {
  EXPECT_NE(refusal_of(FinishedMessage::kKind, "{}").message.find("exit_code"), std::string::npos);
  EXPECT_NE(refusal_of(PermitMessage::kKind, R"({"term":1,"step":"2","ranks":[]})").message.find("step"),
            std::string::npos);
  EXPECT_NE(refusal_of(HookMessage::kKind, R"({"container":"main"})").message.find("seconds_left"), std::string::npos);
}

TEST(Messages, RefuseWhatIsNoObject) {
  for (const char* body : {"", "[]", "3", "null", "{", "\xff\xfe"}) {
    for (std::uint16_t kind = 1; kind <= 18; ++kind)
      EXPECT_FALSE(decode_local_message(kind, body).has_value()) << kind << " " << body;
    for (std::uint16_t kind = 101; kind <= 115; ++kind)
      EXPECT_FALSE(decode_peer_message(kind, body).has_value()) << kind << " " << body;
  }
}

TEST(Messages, RefuseNamesThatLeadOutOfTheFolder) {
  for (const char* path : {"../a", "a/b", ".", "..", ".hidden"}) {
    const std::string offer = std::string(R"({"manifest_hash":"","step":1,"path":")") + path + R"("})";
    EXPECT_EQ(refusal_of(OfferMessage::kKind, offer).code, ErrorCode::invalid_input) << path;
    EXPECT_EQ(refusal_of(OfferMessage::kPeerKind, offer).code, ErrorCode::invalid_input) << path;
  }
}

TEST(Messages, RefuseNumbersOutOfRange) {
  EXPECT_FALSE(decode_local_message(1, R"({"rank":4,"world_size":4,"pid":1,"state_bytes_max":0,"library_version":"x"})")
                   .has_value());
  EXPECT_FALSE(decode_local_message(1, R"({"rank":0,"world_size":0,"pid":1,"state_bytes_max":0,"library_version":"x"})")
                   .has_value());
  EXPECT_FALSE(decode_local_message(7, R"({"attempt":0,"step":1,"path":"a"})").has_value());
  EXPECT_FALSE(decode_local_message(
                   7, R"({"attempt":2,"step":1,"path":"a","summary":{"bytes":1,"world_size":2,"live_ranks":3}})")
                   .has_value());
  EXPECT_FALSE(decode_local_message(
                   7, R"({"attempt":2,"step":1,"path":"a","summary":{"bytes":1,"world_size":65537,"live_ranks":3}})")
                   .has_value());
  EXPECT_FALSE(decode_local_message(2, R"({"checkpoint_dir":"/c","incarnation":9,"slot_bytes":4096,"ranks_here":0})")
                   .has_value());
  EXPECT_FALSE(
      decode_local_message(2, R"({"checkpoint_dir":"/c","incarnation":9,"slot_bytes":4096,"ranks_here":65537})")
          .has_value());
  EXPECT_FALSE(decode_local_message(17, R"({"container":"main","seconds_left":-1})").has_value());
  EXPECT_FALSE(decode_local_message(17, R"({"container":"main","seconds_left":1e300})").has_value());
  EXPECT_FALSE(decode_peer_message(110, R"({"term":1,"step":2,"ranks":[-1]})").has_value());
  EXPECT_FALSE(decode_peer_message(110, R"({"term":1,"step":2,"ranks":[65536]})").has_value());
  EXPECT_FALSE(
      decode_peer_message(
          109,
          R"({"term":1,"ordinal":0,"ranks":[{"rank":0,"alive":true,"clean":true,"step":281474976710656,"phase":"between"}]})")
          .has_value());
}

TEST(Messages, RefuseTextsThatAreTooLong) {
  const std::string body = R"({"step":1,"why":")" + std::string(3 * kMessageTextBytesMax, 'x') + R"("})";
  EXPECT_FALSE(decode_local_message(11, body).has_value());
}

TEST(Messages, CutSentencesThatAreTooLongWhenTheySendThem) {
  const EncodedMessage encoded =
      encode_local_message(CollectiveFailedMessage{1, std::string(3 * kMessageTextBytesMax, 'x')});
  EXPECT_TRUE(decode_local_message(11, encoded.body).has_value());
}

TEST(Messages, AnErrorCodeOfALaterVersionIsStillAnError) {
  const auto message =
      decode_local_message(10, R"({"term":1,"error":{"code":"haunted","message":"the disk is haunted"}})");
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::get<WriteFailedMessage>(*message).error,
            (Error{ErrorCode::internal, "the disk is haunted", Retry::no}));
}

void damage_texts(std::uint64_t seed) {
  Prng prng(seed);
  std::size_t refused = 0;
  for (int round = 0; round < 20; ++round) {
    for (const PeerCase& test : peer_cases()) {
      if (test.body.size() <= 2) continue;
      std::string body = test.body;
      body[prng.below(body.size())] = static_cast<char>(prng.below(256));
      refused += decode_peer_message(peer_kind_of(test.message), body).has_value() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(Messages, SurviveAnyDamageToTheirText) { test::for_each_seed({.fixed = {7}}, damage_texts); }

TEST(Terms, PutTheRoundBeforeTheOrdinal) {
  EXPECT_LT(make_term(1, 3), make_term(2, 0));
  EXPECT_LT(make_term(2, 0), make_term(2, 1));
  EXPECT_EQ(round_of(make_term(7, 5)), 7u);
  EXPECT_EQ(coordinator_of(make_term(7, 5)), 5u);
}

}  // namespace
}  // namespace rekindle
