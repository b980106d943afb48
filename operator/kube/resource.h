// Names the kinds of objects that the operator reads or writes, as the API server's paths spell
// them.
#pragma once

#include <string>
#include <string_view>

namespace rekindle::op {

struct Resource {
  std::string_view group;  // empty for the core group
  std::string_view version;
  std::string_view plural;  // as in the path
  std::string_view kind;
  bool namespaced = true;

  bool operator==(const Resource&) const = default;
};

inline constexpr Resource kPods{"", "v1", "pods", "Pod", true};
inline constexpr Resource kSecrets{"", "v1", "secrets", "Secret", true};
inline constexpr Resource kEvents{"events.k8s.io", "v1", "events", "Event", true};
inline constexpr Resource kMutatingWebhooks{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
                                            "MutatingWebhookConfiguration", false};
inline constexpr Resource kJobs{"batch.volcano.sh", "v1alpha1", "jobs", "Job", true};
inline constexpr Resource kPodGroups{"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", true};
inline constexpr Resource kBreakpoints{"rekindle.dev", "v1alpha1", "breakpoints", "Breakpoint", true};

// "v1" or "batch.volcano.sh/v1alpha1", as in the apiVersion field.
std::string api_version(const Resource& resource);

// "/api/v1/namespaces/a/pods", "/apis/batch.volcano.sh/v1alpha1/jobs"; an empty namespace means all
// of them. Parts are percent-encoded, so a name from outside cannot leave its place in the path.
std::string collection_path(const Resource& resource, std::string_view namespace_name);

}  // namespace rekindle::op
