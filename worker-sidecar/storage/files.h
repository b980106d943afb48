// Small whole files and folders over a FileSystem: what every other part of this folder is made of.
// EINTR and short writes are handled here. Messages carry the path and what to change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

inline constexpr gid_t kSharedGroup = 64532;        // the supplemental group that admission adds
inline constexpr mode_t kSharedFolderMode = 02770;  // files made inside inherit the group
inline constexpr mode_t kSharedFileMode = 0660;

// Closes on destruction; close() itself reports what the storage held back until then.
class OpenFile {
 public:
  OpenFile(FileSystem& file_system, int descriptor) : file_system_(&file_system), descriptor_(descriptor) {}
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;

  int descriptor() const { return descriptor_; }
  int close();

 private:
  FileSystem* file_system_;
  int descriptor_;
};

std::string join_path(std::string_view folder, std::string_view name);

// The message for a failed call: what was tried, on which path, and for the usual causes what a
// person changes (read-only mount, full disk, quota, permission with the group's number, missing
// folder).
std::unexpected<Error> storage_failure(int error_number, std::string_view doing, std::string_view path);

// A plain file, and nothing else: what other names lead to is invalid_input, at once, also where
// opening or reading it would wait for another process (a FIFO). `info`: as it was found, when not
// null.
Result<OpenFile> open_for_reading(FileSystem& file_system, const std::string& path, FileInfo* info = nullptr,
                                  int more_flags = 0);

// The folder `base`, wherever that leads, and in it `inside` ("a1-s7-x", of any number of parts, or
// none) without following a link. Error refused when a part is a link or a file.
Result<OpenFile> open_for_removing(FileSystem& file_system, const std::string& base, const std::string& inside);

// Removes one file, or one empty folder, in this way. One that is gone is fine.
Status remove_beneath(FileSystem& file_system, const std::string& base, const std::string& inside, FileKind kind);

Result<FileInfo> info_of(FileSystem& file_system, const std::string& path);
Status write_all(FileSystem& file_system, int descriptor, const void* data, std::size_t bytes, std::uint64_t offset,
                 std::string_view path);
Status fsync_folder(FileSystem& file_system, const std::string& path);
Status fsync_open_folder(FileSystem& file_system, int descriptor, const std::string& path);

// A new file (an existing one is an error) with this content, mode 0660, fsynced; removed again on
// failure.
Status write_new_file(FileSystem& file_system, const std::string& path, std::string_view content);

// Fails when the file is larger than bytes_max.
Result<std::string> read_whole_file(FileSystem& file_system, const std::string& path, std::uint64_t bytes_max);

// Fills `data` from `offset` or fails; a file that ends early is ErrorCode::corrupt.
Status read_exactly(FileSystem& file_system, int descriptor, void* data, std::size_t bytes, std::uint64_t offset,
                    std::string_view path);

// The header of a data file of `file_bytes`, length field included (checkpoint/safetensors.h).
Result<std::string> read_data_header(FileSystem& file_system, int descriptor, std::uint64_t file_bytes,
                                     std::string_view path);

Result<std::vector<std::string>> list_folder(FileSystem& file_system, const std::string& path);

// Makes `path` appear with `content`, whole or not at all, exclusively: temporary file in the same
// folder, fsync, link, fsync of the folder. Error already_exists when the name is taken by
// something that is not the file just linked (a repeated NFS request is recognized by its inode).
Status publish_file(FileSystem& file_system, const std::string& folder, std::string_view name, std::string_view content,
                    std::string_view nonce);

}  // namespace rekindle
