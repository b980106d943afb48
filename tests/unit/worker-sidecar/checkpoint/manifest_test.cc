#include "worker-sidecar/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <functional>

#include "common/base/format.h"
#include "tests/support/thoroughness.h"
#include "tests/unit/worker-sidecar/checkpoint/job.h"
#include "worker-sidecar/checkpoint/hash.h"

namespace rekindle {
namespace {

Manifest make_manifest() {
  const std::string hash(32, 'a');
  return {.job = kJob,
          .attempt = 2,
          .step = 184,
          .term = 65536,
          .world_size = 2,
          .live_ranks = 1,
          .agreed_milliseconds = 6,
          .trigger = {"pre_stop", "digits-worker-0"},
          .parent = ParentPoint{1, 100, "a1-s100-x"},
          .time = "2026-01-02T03:04:05Z",
          .tensors = {{"w",
                       Dtype::f32,
                       {4, 2},
                       {{"rank-0.safetensors", "w[0:3]", {0, 0}, {3, 2}, 80, 104},
                        {"rank-1.safetensors", "w[3:4]", {3, 0}, {1, 2}, 80, 88}}},
                      {"s", Dtype::f64, {}, {{"rank-1.safetensors", "s", {}, {}, 88, 96}}}},
          .states = {{1, "sampler", "state-0.safetensors", "state/1/sampler", 24, 80, 104}},
          .inexact_ranks = {0},
          .files = {{"rank-0.safetensors", 104, hash, {std::string(16, 'b')}},
                    {"rank-1.safetensors", 96, hash},
                    {"state-0.safetensors", 104, hash}}};
}

std::string message_for(const std::function<void(Manifest&)>& change) {
  Manifest manifest = make_manifest();
  change(manifest);
  const Result<SealedManifest> decoded = decode_manifest(encode_manifest(manifest).text);
  return decoded ? "" : decoded.error().message;
}

TEST(Manifest, GoesThereAndBack) {
  const EncodedManifest encoded = encode_manifest(make_manifest());
  const Result<SealedManifest> decoded = decode_manifest(encoded.text);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->manifest, make_manifest());
  EXPECT_EQ(decoded->hash, encoded.hash);
}

TEST(Manifest, GoldenBytes) {
  Manifest manifest = make_manifest();
  manifest.tensors.pop_back();
  manifest.tensors[0] = {"s", Dtype::f64, {}, {{"rank-1.safetensors", "s", {}, {}, 88, 96}}};
  manifest.states.clear();
  manifest.files = {{"rank-1.safetensors", 96, std::string(32, 'a')}};
  const std::string body =
      R"({"agreed_milliseconds":6,"attempt":2,"files":[{"bytes":96,"hash":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","name":"rank-1.safetensors"}],"format":"rekindle-checkpoint",)"
      R"("inexact_ranks":[0],"job":{"name":"digits","namespace":"team-a","uid":"5f1c"},"kind":"breakpoint","live_ranks":1,)"
      R"("parent":{"attempt":1,"path":"a1-s100-x","step":100},"states":[],"step":184,"tensors":[{"dtype":"F64","global_shape":[],"name":"s",)"
      R"("pieces":[{"begin_byte":88,"end_byte":96,"file":"rank-1.safetensors","key":"s","offset":[],"shape":[]}]}],"term":65536,)"
      R"("time":"2026-01-02T03:04:05Z","trigger":{"cause":"pre_stop","detail":"digits-worker-0"},"version":1,"world_size":2})";
  EXPECT_EQ(encode_manifest(manifest).text, format(R"({{"hash":"{}","manifest":{}}})", hash_of(body), body));
}

TEST(Manifest, TheHashIsXxh3OfThatText) {
  // Fixed values, so that no change of library or platform goes unseen.
  EXPECT_EQ(hash_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(chunk_hash_of(""), "2d06800538d394c2");
}

TEST(Manifest, CutShortAtEachLengthIsRefused) {
  const std::string text = encode_manifest(make_manifest()).text;
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    EXPECT_FALSE(decode_manifest(text.substr(0, bytes))) << bytes;
}

TEST(Manifest, EveryFlippedBitIsRefused) {
  const std::string text = encode_manifest(make_manifest()).text;
  Sample which(20);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      if (!which.takes()) continue;
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      ASSERT_FALSE(decode_manifest(damaged)) << "byte " << i << " bit " << bit;
    }
  }
}

TEST(Manifest, PiecesOfPackedElementsAreOfWholeBytes) {
  const auto message_of = [](std::uint64_t middle) {
    return message_for([&](Manifest& manifest) {
      // 4 rows of 6 elements, cut into columns: 4 * 6 bits * 4 = 12 bytes in all.
      manifest.tensors[0] = {"w",
                             Dtype::f4,
                             {4, 6},
                             {{"rank-0.safetensors", "w", {0, 0}, {4, middle}, 80, 80 + 2 * middle},
                              {"rank-1.safetensors", "w", {0, middle}, {4, 6 - middle}, 72, 72 + 2 * (6 - middle)}}};
    });
  };
  EXPECT_EQ(message_of(2), "");
  EXPECT_EQ(message_of(3), "the manifest is wrong: piece \"w\" begins or ends inside a byte");
}

TEST(Manifest, WithoutTheTimeThatAgreementTookItGoesThereAndBack) {
  Manifest manifest = make_manifest();
  manifest.agreed_milliseconds = 0;
  const EncodedManifest encoded = encode_manifest(manifest);
  EXPECT_FALSE(encoded.text.contains("agreed_milliseconds"));
  const Result<SealedManifest> decoded = decode_manifest(encoded.text);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->manifest, manifest);
}

TEST(Manifest, AnotherSpellingOfTheSameValuesIsRefused) {
  const std::string text = encode_manifest(make_manifest()).text;
  EXPECT_FALSE(decode_manifest(text + "\n"));
  EXPECT_FALSE(decode_manifest(" " + text));
  std::string extra = text;
  extra.insert(1, R"("note":1,)");
  EXPECT_FALSE(decode_manifest(extra));
}

// Found by the fuzzer: a field that nobody reads was carried along under a right hash.
TEST(Manifest, AFieldThatItsVersionDoesNotHaveIsRefusedUnderARightHash) {
  const std::string text = encode_manifest(make_manifest()).text;
  for (const auto& [field, with] : {std::pair{R"("inexact_ranks":)", R"("inert":1,"inexact_ranks":)"},
                                    {R"("agreed_milliseconds":6)", R"("agreed_millisecond":6)"}}) {
    std::string body = text.substr(text.find("\"manifest\":") + 11);
    body.pop_back();
    body.replace(body.find(field), std::string_view(field).size(), with);
    const Result<SealedManifest> decoded =
        decode_manifest(format(R"({{"hash":"{}","manifest":{}}})", hash_of(body), body));
    ASSERT_FALSE(decoded) << with;
    EXPECT_EQ(decoded.error().code, ErrorCode::invalid_input);
    EXPECT_NE(decoded.error().message.find("version 1 does not have"), std::string::npos) << decoded.error().message;
  }
}

TEST(Manifest, ANewerVersionIsRefusedByName) {
  std::string text = encode_manifest(make_manifest()).text;
  text.replace(text.find("\"version\":1"), 11, "\"version\":9");
  const Result<SealedManifest> decoded = decode_manifest(text);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::refused);
  EXPECT_EQ(decoded.error().message, "the manifest has version 9; this program reads up to 1: use a newer one");
}

TEST(Manifest, RowsThatNobodyWroteAreNamed) {
  EXPECT_EQ(message_for([](Manifest& m) { m.tensors[0].pieces.pop_back(); }),
            "the manifest is wrong: tensor \"w\" is not complete: rows 3 to 4 are in no file");
  EXPECT_EQ(message_for([](Manifest& m) { m.tensors[0].pieces.erase(m.tensors[0].pieces.begin()); }),
            "the manifest is wrong: tensor \"w\" is not complete: rows 0 to 3 are in no file");
  EXPECT_NE(message_for([](Manifest& m) { m.tensors[1].pieces.clear(); }), "");
}

TEST(Manifest, RowsThatTwoWroteAreNamed) {
  const std::string message = message_for([](Manifest& m) {
    m.tensors[0].pieces[1] = {"rank-1.safetensors", "w[2:4]", {2, 0}, {2, 2}, 80, 96};
    m.tensors[1].pieces[0].begin_byte = m.tensors[1].pieces[0].end_byte;
  });
  EXPECT_NE(message.find("overlap"), std::string::npos) << message;
  EXPECT_NE(message.find("w[0:3]"), std::string::npos) << message;
}

TEST(Manifest, AHoleThatAnOverlapHidesIsFound) {
  // As many elements as the tensor has, but one box twice and one not at all.
  const std::string message = message_for([](Manifest& m) {
    m.tensors[0].global_shape = {2, 2};
    m.tensors[0].pieces = {{"rank-0.safetensors", "a", {0, 0}, {1, 2}, 80, 88},
                           {"rank-0.safetensors", "b", {0, 0}, {1, 2}, 88, 96}};
  });
  EXPECT_NE(message.find("overlap"), std::string::npos) << message;
}

TEST(Manifest, BoxesOfAnyDimensionMayCoverATensor) {
  EXPECT_EQ(message_for([](Manifest& m) {
              m.tensors[0].pieces = {{"rank-0.safetensors", "w[0:4]", {0, 0}, {4, 1}, 80, 96},
                                     {"rank-1.safetensors", "w[0:4]", {0, 1}, {4, 1}, 72, 88}};
            }),
            "");
  EXPECT_NE(message_for([](Manifest& m) {
              m.tensors[0].pieces = {{"rank-0.safetensors", "w[0:4]", {0, 0}, {4, 1}, 80, 96},
                                     {"rank-1.safetensors", "w[0:4]", {0, 1}, {3, 1}, 72, 84}};
            }),
            "");
}

TEST(Manifest, NamesThatLeadOutOfTheFolderAreRefused) {
  for (const std::string& name : {std::string("../rank-0.safetensors"), std::string("/etc/passwd"), std::string(".."),
                                  std::string(".x"), std::string("manifest.json"), std::string("a/b"), std::string()}) {
    EXPECT_NE(message_for([&](Manifest& m) {
                m.files[0].name = name;
                m.tensors[0].pieces[0].file = name;
              }),
              "")
        << name;
  }
  EXPECT_NE(message_for([](Manifest& m) { m.parent->path = "../../a1-s100-x"; }), "");
}

TEST(Manifest, EachBrokenRuleIsRefusedUnderARightHash) {
  const std::vector<std::pair<const char*, std::function<void(Manifest&)>>> changes = {
      {"attempt 0", [](Manifest& m) { m.attempt = 0; }},
      {"step 0", [](Manifest& m) { m.step = 0; }},
      {"no ranks", [](Manifest& m) { m.world_size = 0; }},
      {"made by more than there are", [](Manifest& m) { m.live_ranks = 3; }},
      {"job without a name", [](Manifest& m) { m.job.name = ""; }},
      {"parent in the future", [](Manifest& m) { m.parent->attempt = 2; }},
      {"range beyond the file", [](Manifest& m) { m.files[0].bytes = 103; }},
      {"range in the length field",
       [](Manifest& m) { m.tensors[1].pieces[0] = {"rank-1.safetensors", "s", {}, {}, 0, 8}; }},
      {"range and shape differ", [](Manifest& m) { m.tensors[0].pieces[0].end_byte -= 4; }},
      {"bytes used twice", [](Manifest& m) { m.tensors[1].pieces[0] = {"rank-1.safetensors", "s", {}, {}, 84, 92}; }},
      {"file not listed", [](Manifest& m) { m.files.erase(m.files.begin()); }},
      {"file twice", [](Manifest& m) { m.files.push_back(m.files[0]); }},
      {"hash that is none", [](Manifest& m) { m.files[0].hash = "A" + std::string(31, 'a'); }},
      {"chunks too many", [](Manifest& m) { m.files[0].chunks.push_back(std::string(16, 'b')); }},
      {"tensor twice", [](Manifest& m) { m.tensors[1].name = "w"; }},
      {"state of no rank", [](Manifest& m) { m.states[0].rank = 2; }},
      {"state twice", [](Manifest& m) { m.states.push_back(m.states[0]); }},
      {"state size", [](Manifest& m) { m.states[0].bytes = 23; }},
      {"inexact rank that does not exist", [](Manifest& m) { m.inexact_ranks = {2}; }},
      {"piece outside the tensor", [](Manifest& m) { m.tensors[0].pieces[1].offset[0] = 4; }},
      {"piece with other dimensions", [](Manifest& m) { m.tensors[0].pieces[1].offset.pop_back(); }},
      {"shape that overflows", [](Manifest& m) { m.tensors[0].global_shape = {~std::uint64_t{0}, 2}; }},
  };
  for (const auto& [what, change] : changes) EXPECT_NE(message_for(change), "") << what;
}

TEST(Manifest, ForeignJobIsRefusedWithBothNames) {
  const Status status = check_job(make_manifest(), {"team-b", "digits", "5f1c"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the checkpoint belongs to job team-a/digits, not to team-b/digits");
  EXPECT_TRUE(check_job(make_manifest(), {"team-a", "digits", "a later uid"}));
}

TEST(Manifest, CountsItsBytes) {
  EXPECT_EQ(data_bytes(make_manifest()), 24u + 8 + 8 + 24);
  EXPECT_EQ(file_bytes(make_manifest()), 104u + 96 + 104);
}

TEST(Manifest, IsSummarizedForThoseWhoDoNotReadIt) {
  EXPECT_EQ(summarize(make_manifest()),
            (CheckpointSummary{.bytes = 304, .world_size = 2, .live_ranks = 1, .agreed_milliseconds = 6}));
}

}  // namespace
}  // namespace rekindle
