# Every outside library in one place; all are Debian 12 packages (see tests/support/packages.txt).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(GTest REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)

# Header-only use: the runtime may link libc only, so the same inlined hash serves every part.
add_library(rekindle_xxhash INTERFACE)
target_compile_definitions(rekindle_xxhash INTERFACE XXH_INLINE_ALL)

# The archive, not the shared library, for the same reason.
pkg_check_modules(uring REQUIRED liburing)
find_library(URING_ARCHIVE NAMES liburing.a REQUIRED)
add_library(rekindle_uring INTERFACE)
target_link_libraries(rekindle_uring INTERFACE ${URING_ARCHIVE})

add_library(rekindle_asio INTERFACE)
# Without the last one asio chooses how it allocates by what was included before it, and files of one program differ.
target_compile_definitions(rekindle_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_DISABLE_STD_ALIGNED_ALLOC)
target_link_libraries(rekindle_asio INTERFACE Threads::Threads)

# The small runtime, for the CLI only. By name and not by path, so that the linker may take the archive for the static `rekindle`.
add_library(rekindle_protobuf INTERFACE)
target_link_libraries(rekindle_protobuf INTERFACE protobuf-lite Threads::Threads)

# By name for the same reason.
add_library(rekindle_zlib INTERFACE)
target_link_libraries(rekindle_zlib INTERFACE z)
