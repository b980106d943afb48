// Every label, annotation, name and reason that the operator shares with Kubernetes, Volcano, the
// sidecar, the chart and users. The meaning stands in docs/formats/injection.md; nothing else in
// the operator spells one of these out.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/contract/environment.h"

namespace rekindle::op::names {

// --- what a user writes on the Job
inline constexpr std::string_view kSchedulingLabel = "fault-scheduling";
inline constexpr std::string_view kSchedulingGrace = "grace";
inline constexpr std::string_view kSchedulingForce = "force";
inline constexpr std::string_view kSchedulingOff = "off";
inline constexpr std::string_view kSchedulingNone = "none";
inline constexpr std::string_view kClaimAnnotation = "rekindle.dev/checkpoint-claim";
inline constexpr std::string_view kPathAnnotation = "rekindle.dev/checkpoint-path";
inline constexpr std::string_view kDeadlineAnnotation = "rekindle.dev/deadline-seconds";
inline constexpr std::string_view kRanksPerPodAnnotation = "rekindle.dev/ranks-per-pod";
inline constexpr std::string_view kStrictRetriesAnnotation = "rekindle.dev/strict-retries";
inline constexpr std::string_view kMemoryVolumeAnnotation = "rekindle.dev/memory-volume-size";
inline constexpr std::string_view kKeepAnnotation = "rekindle.dev/keep";
inline constexpr std::string_view kKeepEveryAnnotation = "rekindle.dev/keep-every";

// How checkpoints are made while training goes on, and kept: what the user writes becomes the
// variable, whose text is read in common/contract/checkpoint_settings.h. The chart's value (below
// `checkpoint`) is for jobs that do not say; empty: only a job can.
struct CheckpointSetting {
  std::string_view annotation;
  std::string_view variable;
  std::string_view chart_value;
};
inline constexpr std::array<CheckpointSetting, 8> kCheckpointSettings{{
    {"rekindle.dev/checkpoint-every", environment::kCheckpointEvery, "every"},
    {"rekindle.dev/checkpoint-config", environment::kCheckpointConfig, ""},
    {"rekindle.dev/shadow-every", environment::kShadowEvery, "shadowEvery"},
    {kKeepAnnotation, environment::kKeep, "keep"},
    {kKeepEveryAnnotation, environment::kKeepEvery, "keepEvery"},
    {"rekindle.dev/write-bandwidth-max", environment::kWriteBandwidthMax, "writeBandwidthMax"},
    {"rekindle.dev/failure-every", environment::kFailureEvery, "failureEvery"},
    {"rekindle.dev/resume", environment::kResume, "resume"},
}};

// --- what we write on the Job and its PodGroup
inline constexpr std::string_view kLastStepAnnotation = "rekindle.dev/last-checkpoint-step";
inline constexpr std::string_view kLastTimeAnnotation = "rekindle.dev/last-checkpoint-time";
// proposed in Volcano's issue 5998
inline constexpr std::string_view kVolcanoLastTimeAnnotation = "volcano.sh/last-checkpoint-time";

// --- on pods
inline constexpr std::string_view kProtectedLabel = "rekindle.dev/protected";
inline constexpr std::string_view kInjectionGate = "rekindle.dev/injection";
inline constexpr std::string_view kInjectedAnnotation = "rekindle.dev/injected";
// why the webhook left the pod gated
inline constexpr std::string_view kNotInjectedAnnotation = "rekindle.dev/not-injected";
inline constexpr std::string_view kRankIndexAnnotation = "hccl/rankIndex";

// --- Volcano's
inline constexpr std::string_view kVolcanoGroup = "batch.volcano.sh";
inline constexpr std::string_view kVolcanoApiVersion = "batch.volcano.sh/v1alpha1";
inline constexpr std::string_view kTaskSpecAnnotation = "volcano.sh/task-spec";
inline constexpr std::string_view kTaskIndexAnnotation = "volcano.sh/task-index";
inline constexpr std::string_view kJobVersionAnnotation = "volcano.sh/job-version";
inline constexpr std::string_view kOutOfSyncAnnotation = "volcano.sh/controller-out-of-sync";

// --- ours
inline constexpr std::string_view kApiVersion = "rekindle.dev/v1alpha1";
inline constexpr std::string_view kBreakpointKind = "Breakpoint";
inline constexpr std::string_view kController = "rekindle.dev/operator";
inline constexpr std::string_view kOperatorRequester = "rekindle-operator";

// --- containers, volumes and paths in a pod
inline constexpr std::string_view kSidecar = "rekindle-sidecar";
inline constexpr std::string_view kSidecarProgram = "/usr/bin/rekindle-sidecar";
inline constexpr std::string_view kRunVolume = "rekindle-run";
inline constexpr std::string_view kBinVolume = "rekindle-bin";
inline constexpr std::string_view kTlsVolume = "rekindle-tls";
inline constexpr std::string_view kCheckpointsVolume = "rekindle-checkpoints";
inline constexpr std::string_view kRunPath = "/rekindle/run";
inline constexpr std::string_view kBinPath = "/rekindle/bin";
inline constexpr std::string_view kTlsPath = "/rekindle/tls";
inline constexpr std::string_view kCheckpointsPath = "/rekindle/checkpoints";
inline constexpr std::string_view kSocketPath = "/rekindle/run/sidecar.sock";
inline constexpr std::string_view kHookPath = "/rekindle/bin/rekindle-hook";
inline constexpr std::int64_t kSidecarUser = 65532;
inline constexpr std::int64_t kSharedGroup = 64532;

// --- numbers that users see
inline constexpr std::int64_t kMaxRetry = 100;

// --- condition types of a Breakpoint
inline constexpr std::string_view kAgreed = "Agreed";
inline constexpr std::string_view kDurable = "Durable";
inline constexpr std::string_view kRestored = "Restored";
inline constexpr std::string_view kFailed = "Failed";

// --- reasons: of conditions and of events, fixed so that people can search and alert on them
namespace reason {
// event on the Job: a recovery begins
inline constexpr std::string_view kFaultSeen = "FaultSeen";
inline constexpr std::string_view kStepAgreed = "StepAgreed";                // Agreed
inline constexpr std::string_view kPublished = "Published";                  // Durable
inline constexpr std::string_view kBreakpointDurable = "BreakpointDurable";  // event
inline constexpr std::string_view kBreakpointFailed = "BreakpointFailed";    // event; Failed
// Durable=False: the sidecars said why
inline constexpr std::string_view kSaveFailed = "SaveFailed";
// Durable=False: no sidecar reported in time
inline constexpr std::string_view kDeadlineExceeded = "DeadlineExceeded";
// Restored=False for now
inline constexpr std::string_view kRestarting = "Restarting";
inline constexpr std::string_view kResumed = "Resumed";  // Restored
// Restored: another checkpoint than this one
inline constexpr std::string_view kResumedOlder = "ResumedFromOlder";
// Restored: nothing to restore, from step 1
inline constexpr std::string_view kStartedOver = "StartedOver";
inline constexpr std::string_view kJobResumed = "JobResumed";  // event
// another fault came before the job was back
inline constexpr std::string_view kSuperseded = "Superseded";
// the job ended before it was back
inline constexpr std::string_view kJobEnded = "JobEnded";
// a delete would end the job by the user's policy
inline constexpr std::string_view kPolicyEndsJob = "PolicyEndsJob";
// fails again and again at the same step
inline constexpr std::string_view kNoProgress = "NoProgress";
// user's Breakpoint
inline constexpr std::string_view kJobNotFound = "JobNotFound";
// user's Breakpoint
inline constexpr std::string_view kJobNotProtected = "JobNotProtected";
// user's Breakpoint
inline constexpr std::string_view kJobNotRunning = "JobNotRunning";
// event: labelled later or created before installation
inline constexpr std::string_view kNotProtected = "NotProtected";
// event: a gated pod is made anew
inline constexpr std::string_view kInjectionMissed = "InjectionMissed";
// event: the webhook could not understand the pod
inline constexpr std::string_view kInjectionRefused = "InjectionRefused";
// event: parked pods of a scaled job are restarted
inline constexpr std::string_view kStrandedPods = "StrandedPods";
// event: new pods wait for the next restart
inline constexpr std::string_view kScaledWhileTraining = "ScaledWhileTraining";
// event: what a sidecar says to people
inline constexpr std::string_view kSidecarProblem = "SidecarProblem";
}  // namespace reason

}  // namespace rekindle::op::names
