#include "worker-sidecar/storage/checkpoint_root.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {
namespace {

CheckpointRootOptions options_for(const std::string& root) { return {.root = root, .job = make_job(), .nonce = "n1"}; }

// Storage that breaks in one way wherever it matters.
class OddStorage : public FaultyFileSystem {
 public:
  OddStorage() : FaultyFileSystem({}) {}
};

TEST(OpenJobFolder, MakesAFolderThatTheGroupShares) {
  const TemporaryFolder root;
  const Result<JobFolder> folder = open_job_folder(real_file_system(), options_for(root.path()));
  ASSERT_TRUE(folder.has_value()) << folder.error().message;
  EXPECT_EQ(folder->path, root.at("team-a.digits"));
  EXPECT_TRUE(folder->created);
  EXPECT_EQ(info_of(real_file_system(), folder->path)->mode, 02770u);
  EXPECT_EQ(info_of(real_file_system(), folder->path + "/attempts")->mode, 02770u);
  EXPECT_EQ(read_job_file(real_file_system(), folder->path)->name, "digits");
  // Nothing of the probe is left.
  EXPECT_EQ(list_folder(real_file_system(), folder->path).value(), (std::vector<std::string>{"attempts", "job.json"}));
}

TEST(OpenJobFolder, ASecondProcessFindsIt) {
  const TemporaryFolder root;
  ASSERT_TRUE(open_job_folder(real_file_system(), options_for(root.path())));
  const Result<JobFolder> folder = open_job_folder(real_file_system(), options_for(root.path()));
  ASSERT_TRUE(folder.has_value()) << folder.error().message;
  EXPECT_FALSE(folder->created);
}

TEST(OpenJobFolder, JobFileGoldenBytes) {
  const TemporaryFolder root;
  ASSERT_TRUE(open_job_folder(real_file_system(), options_for(root.path())));
  EXPECT_EQ(read_bytes(root.at("team-a.digits/job.json")),
            R"({"format":"rekindle-job","name":"digits","namespace":"team-a","version":1})");
}

TEST(OpenJobFolder, AMissingRootSaysWhatToMount) {
  const TemporaryFolder root;
  const Result<JobFolder> folder = open_job_folder(real_file_system(), options_for(root.at("missing")));
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::not_found);
  EXPECT_NE(folder.error().message.find("mount a volume there"), std::string::npos) << folder.error().message;
  EXPECT_FALSE(std::filesystem::exists(root.at("missing")));
}

TEST(OpenJobFolder, OnALaptopTheRootIsMade) {
  const TemporaryFolder root;
  CheckpointRootOptions options = options_for(root.at("missing"));
  options.create_root = true;
  EXPECT_TRUE(open_job_folder(real_file_system(), options));
}

TEST(OpenJobFolder, ARootThatIsAFileIsRefused) {
  const TemporaryFolder root;
  write_bytes(root.at("file"), "x");
  EXPECT_FALSE(open_job_folder(real_file_system(), options_for(root.at("file"))));
}

TEST(OpenJobFolder, ARootBehindALinkIsFine) {
  const TemporaryFolder root;
  std::filesystem::create_directory(root.at("volume"));
  std::filesystem::create_directory_symlink(root.at("volume"), root.at("link"));
  EXPECT_TRUE(open_job_folder(real_file_system(), options_for(root.at("link"))));
}

TEST(OpenJobFolder, AnotherJobsFolderIsRefusedByName) {
  const TemporaryFolder root;
  ASSERT_TRUE(open_job_folder(real_file_system(), options_for(root.path())));
  write_bytes(root.at("team-a.digits/job.json"),
              R"({"format":"rekindle-job","name":"letters","namespace":"team-b","version":1})");
  const Result<JobFolder> folder = open_job_folder(real_file_system(), options_for(root.path()));
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::refused);
  EXPECT_NE(folder.error().message.find("belongs to job team-b/letters and cannot be used by team-a/digits"),
            std::string::npos)
      << folder.error().message;
}

TEST(OpenJobFolder, AJobsFolderIsNoRoot) {
  const TemporaryFolder root;
  ASSERT_TRUE(open_job_folder(real_file_system(), options_for(root.path())));
  const Result<JobFolder> folder = open_job_folder(real_file_system(), options_for(root.at("team-a.digits")));
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("Give the folder above it"), std::string::npos) << folder.error().message;
}

TEST(OpenJobFolder, AJobFileOfANewerVersionIsRefusedByName) {
  const TemporaryFolder root;
  ASSERT_TRUE(open_job_folder(real_file_system(), options_for(root.path())));
  write_bytes(root.at("team-a.digits/job.json"),
              R"({"format":"rekindle-job","name":"digits","namespace":"team-a","version":4})");
  const Result<JobFolder> folder = open_job_folder(real_file_system(), options_for(root.path()));
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("version 4"), std::string::npos);
}

struct Cause {
  int error_number;
  ErrorCode code;
  const char* advice;
};

TEST(OpenJobFolder, EveryCallThatFailsGivesASentenceWithAdvice) {
  for (const Cause& cause :
       {Cause{EROFS, ErrorCode::refused, "read-only"}, Cause{ENOSPC, ErrorCode::exhausted, "free space"},
        Cause{EACCES, ErrorCode::refused, "64532"}, Cause{EDQUOT, ErrorCode::exhausted, "quota"}}) {
    std::size_t failures = 0;
    for (std::size_t k = 1;; ++k) {
      const TemporaryFolder root;
      FaultyFileSystem broken({.at_call = k, .error_number = cause.error_number});
      const Result<JobFolder> folder = open_job_folder(broken, options_for(root.path()));
      if (broken.broken().empty()) {
        EXPECT_TRUE(folder.has_value());
        break;
      }
      if (!folder) {
        ++failures;
        EXPECT_NE(folder.error().message.find(cause.advice), std::string::npos)
            << "call " << k << " " << broken.broken() << ": " << folder.error().message;
        EXPECT_EQ(folder.error().code, cause.code) << folder.error().message;
      }
      EXPECT_TRUE(open_job_folder(real_file_system(), options_for(root.path())))
          << "call " << k << " left something behind";
    }
    EXPECT_GT(failures, 10u);
  }
}

class NoLinks : public OddStorage {
 public:
  int link(const std::string&, const std::string&) override { return -EPERM; }
};
class LinksThatReplace : public OddStorage {
 public:
  int link(const std::string& from, const std::string& to) override {
    std::filesystem::remove(to);
    return real_file_system().link(from, to);
  }
};
class NoExclusiveCreate : public OddStorage {
 public:
  int open(const std::string& path, int flags, mode_t mode) override {
    return real_file_system().open(path, flags & ~O_EXCL, mode);
  }
};
class OtherBytes : public OddStorage {
 public:
  ssize_t pread(int descriptor, void* data, std::size_t bytes, std::uint64_t offset) override {
    const ssize_t read = real_file_system().pread(descriptor, data, bytes, offset);
    if (read > 0) static_cast<char*>(data)[0] ^= 1;
    return read;
  }
};

TEST(ProbeStorage, RefusesStorageThatCannotKeepThePromises) {
  NoLinks no_links;
  LinksThatReplace links_that_replace;
  NoExclusiveCreate no_exclusive_create;
  OtherBytes other_bytes;
  for (auto& [storage, words] :
       std::initializer_list<std::pair<FileSystem*, const char*>>{{&no_links, "cannot make hard links"},
                                                                  {&links_that_replace, "lets a link replace"},
                                                                  {&no_exclusive_create, "creates a file twice"},
                                                                  {&other_bytes, "other bytes"}}) {
    const TemporaryFolder folder;
    const Status status = probe_storage(*storage, folder.path(), "n1");
    ASSERT_FALSE(status) << words;
    EXPECT_EQ(status.error().code, ErrorCode::refused);
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

// The rest needs a kernel that says no. Root is never refused by modes: as root a child takes
// another user's id and reports.
Result<JobFolder> open_as_nobody(const std::string& root) {
  int pipe_ends[2];
  EXPECT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(9);
    const Result<JobFolder> folder = open_job_folder(real_file_system(), options_for(root));
    const std::string text = folder ? "" : folder.error().message;
    ::_exit(::write(pipe_ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? (folder ? 0 : 1)
                                                                                                 : 9);
  }
  ::close(pipe_ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = ::read(pipe_ends[0], text.data(), text.size());
  ::close(pipe_ends[0]);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
  if (WEXITSTATUS(status) == 0) return JobFolder{};
  return fail(ErrorCode::refused, text);
}

TEST(OpenJobFolder, ARootThatTheUserMayNotWriteSaysWhichGroupNeedsIt) {
  const TemporaryFolder root;
  ::chmod(root.path().c_str(), 0555);
  const Result<JobFolder> folder = open_as_nobody(root.path());
  ::chmod(root.path().c_str(), 0755);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("64532"), std::string::npos) << folder.error().message;
}

// Real mounts where the machine allows them; where it does not, the same errors come from the
// faulty file system above.
class TinyMount {
 public:
  explicit TinyMount(const std::string& path) : path_(path) {
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k,mode=0777") == 0;
  }
  ~TinyMount() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  bool make_read_only() const { return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(OpenJobFolder, AReadOnlyVolumeIsRefusedAndNamed) {
  const TemporaryFolder root;
  const TinyMount mount(root.path());
  Result<JobFolder> folder = fail(ErrorCode::internal, "");
  if (mount.mounted() && mount.make_read_only()) {
    folder = open_job_folder(real_file_system(), options_for(root.path()));
  } else {
    FaultyFileSystem broken({.at_call = 3, .error_number = EROFS});
    folder = open_job_folder(broken, options_for(root.path()));
  }
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::refused);
  EXPECT_NE(folder.error().message.find("mounted read-only"), std::string::npos) << folder.error().message;
}

TEST(SaveCheckpoint, AFullVolumeFailsTheNewSaveGivesTheSpaceBackAndKeepsTheOldOne) {
  const TemporaryFolder root;
  const TinyMount mount(root.path());
  const RankMemory old_memory = make_memory(1, small_layout());
  const RankMemory large = make_memory(2, {{whole_tensor("w1", Dtype::f32, {256, 128})}});
  const std::string job_folder = open_job_folder(real_file_system(), options_for(root.path()))->path;
  ASSERT_TRUE(save_checkpoint(real_file_system(), job_folder, make_job(), {1, 10, "x"}, old_memory));

  FaultyFileSystem full({.at_call = mount.mounted() ? 0u : 12u, .error_number = ENOSPC, .power_off = true});
  const Result<std::string> saved = save_checkpoint(full, job_folder, make_job(), {1, 11, "x"}, large, {}, 1);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, ErrorCode::exhausted) << saved.error().message;
  EXPECT_NE(saved.error().message.find("free space"), std::string::npos) << saved.error().message;
  if (mount.mounted()) {
    EXPECT_TRUE(std::filesystem::is_empty(job_folder + "/a1-s11-x"));
  }
  EXPECT_EQ(load_checkpoint(real_file_system(), job_folder, "a1-s10-x", old_memory.layout, old_memory.states).value(),
            old_memory);
}

}  // namespace
}  // namespace rekindle
