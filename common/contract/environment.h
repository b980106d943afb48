// The names of environment variables by which one program tells another something: the pod webhook
// and `rekindle run` write them, the sidecar, the hook, the library and training scripts read them.
// What each means and who sets it stands in docs/formats/injection.md.
#pragma once

namespace rekindle::environment {

// --- of a rank
inline constexpr char kSocket[] = "REKINDLE_SOCKET";
inline constexpr char kRank[] = "REKINDLE_RANK";
inline constexpr char kWorldSize[] = "REKINDLE_WORLD_SIZE";
inline constexpr char kCheckpointFolder[] = "REKINDLE_CHECKPOINT_DIR";
inline constexpr char kNamespace[] = "REKINDLE_NAMESPACE";
inline constexpr char kJob[] = "REKINDLE_JOB";
inline constexpr char kJobUid[] = "REKINDLE_JOB_UID";

// --- of a rank, as the scripts of frameworks read them (MindSpore's, torchrun's)
inline constexpr char kRankId[] = "RANK_ID";
inline constexpr char kRankSize[] = "RANK_SIZE";
inline constexpr char kTorchRank[] = "RANK";
inline constexpr char kTorchWorldSize[] = "WORLD_SIZE";
inline constexpr char kLocalRank[] = "LOCAL_RANK";
inline constexpr char kMasterAddress[] = "MASTER_ADDR";

// --- of a pod's sidecar
inline constexpr char kBinFolder[] = "REKINDLE_BIN_DIR";
inline constexpr char kTlsFolder[] = "REKINDLE_TLS_DIR";
inline constexpr char kPodName[] = "REKINDLE_POD_NAME";
inline constexpr char kPodUid[] = "REKINDLE_POD_UID";
inline constexpr char kPodAddress[] = "REKINDLE_POD_ADDRESS";
inline constexpr char kPodOrdinal[] = "REKINDLE_POD_ORDINAL";
inline constexpr char kPods[] = "REKINDLE_PODS";
inline constexpr char kRanksPerPod[] = "REKINDLE_RANKS_PER_POD";
inline constexpr char kDeadlineSeconds[] = "REKINDLE_DEADLINE_SECONDS";
inline constexpr char kGraceSeconds[] = "REKINDLE_GRACE_SECONDS";
inline constexpr char kOperator[] = "REKINDLE_OPERATOR";
inline constexpr char kPeerPort[] = "REKINDLE_PEER_PORT";
inline constexpr char kMetricsPort[] = "REKINDLE_METRICS_PORT";

// --- of the preStop hook
inline constexpr char kContainer[] = "REKINDLE_CONTAINER";

// --- how checkpoints are made and kept; texts are read in checkpoint_settings.h
inline constexpr char kCheckpointEvery[] = "REKINDLE_CHECKPOINT_EVERY";
inline constexpr char kCheckpointConfig[] = "REKINDLE_CHECKPOINT_CONFIG";
inline constexpr char kShadowEvery[] = "REKINDLE_SHADOW_EVERY";
inline constexpr char kKeep[] = "REKINDLE_KEEP";
inline constexpr char kKeepEvery[] = "REKINDLE_KEEP_EVERY";
inline constexpr char kWriteBandwidthMax[] = "REKINDLE_WRITE_BANDWIDTH_MAX";
inline constexpr char kFailureEvery[] = "REKINDLE_FAILURE_EVERY";
inline constexpr char kResume[] = "REKINDLE_RESUME";

// Every variable of ours begins with it.
inline constexpr char kPrefix[] = "REKINDLE_";

}  // namespace rekindle::environment
