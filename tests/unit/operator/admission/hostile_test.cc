// Any JSON in place of any part of an object: an answer comes back, the pod webhook never refuses,
// and the patch always fits the object.
#include <gtest/gtest.h>

#include "common/base/format.h"
#include "common/base/prng.h"
#include "tests/support/thoroughness.h"
#include "tests/unit/operator/admission/fixtures.h"

namespace rekindle::op {
namespace {

void collect(Json& value, std::vector<Json*>& places) {
  places.push_back(&value);
  if (value.is_structured()) {
    for (Json& each : value) collect(each, places);
  }
}

// Replaces one place after another by each of these.
template <typename Try>
void with_every_damage(const Json& object, Try attempt) {
  const Json damages[] = {nullptr,
                          true,
                          -7,
                          "text",
                          Json::array(),
                          Json::object(),
                          Json::array({nullptr, 1, "x", Json::object()}),
                          Json::object({{"name", 7}, {"mountPath", Json::array()}})};
  Json copy = object;
  std::vector<Json*> places;
  collect(copy, places);
  Sample which(20);
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (const Json& damage : damages) {
      if (!which.takes()) continue;
      Json damaged = object;
      std::vector<Json*> fresh;
      collect(damaged, fresh);
      *fresh[i] = damage;
      attempt(damaged);
    }
  }
}

TEST(Hostile, EveryDamagedJobGetsAnAnswer) {
  for (const char* name : {"job.yaml", "job-periodic.yaml", "job-own-volume.yaml"}) {
    with_every_damage(read_golden(name), [](const Json& job) {
      const AdmissionAnswer answer = admit_job(job, make_settings());
      EXPECT_NO_THROW(patched(job, answer)) << job;
      EXPECT_TRUE(answer.allowed || !answer.message.empty()) << job;
    });
  }
}

TEST(Hostile, EveryDamagedPodIsAdmitted) {
  const PodOwner owner{"team-a", "digits", "6a1f8a77-2f43-4a0c-9b0e-6a3f9f2c1d10"};
  const std::pair<const char*, const char*> cases[] = {{"pod.yaml", "job.yaml"},
                                                       {"pod-as-users-have-them.yaml", "job-own-volume.yaml"}};
  for (const auto& [pod_name, job_name] : cases) {
    const Job job = stored_job(read_golden(job_name), make_settings());
    with_every_damage(read_golden(pod_name), [&](const Json& pod) {
      protected_owner(pod, "");
      const AdmissionAnswer answer = admit_pod(pod, owner, &job, make_settings());
      EXPECT_TRUE(answer.allowed) << pod;
      EXPECT_NO_THROW(patched(pod, answer)) << pod;
    });
  }
}

// Several places at once, drawn by chance: what one place promises, another may break.
template <typename Try>
void with_random_damage(const Json& object, std::uint64_t seed, Try attempt) {
  Prng luck(seed);
  for (int round = 0; round < 3000; ++round) {
    Json damaged = object;
    for (std::uint64_t count = 2 + luck.below(4); count > 0; --count) {
      std::vector<Json*> places;
      collect(damaged, places);
      Json& place = *places[luck.below(places.size())];
      switch (luck.below(7)) {
        case 0: place = nullptr; break;
        case 1: place = -7; break;
        case 2: place = ""; break;
        case 3: place = Json::array(); break;
        case 4: place = Json::object(); break;
        case 5: place = Json::array({place}); break;
        default: {
          // what stands somewhere else
          const Json other = *places[luck.below(places.size())];
          place = other;
          break;
        }
      }
    }
    attempt(damaged);
  }
}

TEST(Hostile, SeveralDamagesAtOnceAreAnsweredToo) {
  constexpr std::uint64_t kSeed = 20261122;
  SCOPED_TRACE(format("seed {}", kSeed));
  const Job stored = stored_job(read_golden("job.yaml"), make_settings());
  with_random_damage(read_golden("job.yaml"), kSeed, [](const Json& job) {
    const AdmissionAnswer answer = admit_job(job, make_settings());
    EXPECT_NO_THROW(patched(job, answer)) << job;
  });
  with_random_damage(read_golden("pod.yaml"), kSeed, [&](const Json& pod) {
    const AdmissionAnswer answer = admit_pod(pod, protected_owner(pod, "").value_or(kOwner), &stored, make_settings());
    EXPECT_TRUE(answer.allowed) << pod;
    EXPECT_NO_THROW(patched(pod, answer)) << pod;
    const AdmissionAnswer known = admit_pod(pod, kOwner, &stored, make_settings());
    EXPECT_NO_THROW(patched(pod, known)) << pod;
  });
}

}  // namespace
}  // namespace rekindle::op
