# The few functions that every folder's CMakeLists uses. They keep targets alike, so that
# tests/tidy can read the link edges from the text.

# The compiler cache counts paths from the root of the tree: what one clone has compiled, the next one does not compile again.
find_program(REKINDLE_CCACHE ccache)
if(REKINDLE_CCACHE)
  set(cached ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${REKINDLE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${cached})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${cached})
endif()
# No path of the machine that builds ends up in what it builds.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

set(REKINDLE_SANITIZE "" CACHE STRING "Sanitizers for everything, for example address,undefined or thread")

add_library(rekindle_flags INTERFACE)
target_compile_options(rekindle_flags INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=400000>  # 400 MB before the compiler collects its own garbage: 5 to 10 % less time
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-designated-field-initializers>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>  # of libstdc++ itself
  $<$<CXX_COMPILER_ID:Clang>:-Wno-error>)  # g++ builds what ships and has the word on warnings; clang analyses and fuzzes
target_include_directories(rekindle_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(REKINDLE_SANITIZE)
  # What is found ends the program: a test that goes on after undefined behaviour would count as passed.
  target_compile_options(rekindle_flags INTERFACE -fsanitize=${REKINDLE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rekindle_flags INTERFACE -fsanitize=${REKINDLE_SANITIZE})
  # UBSan asks with a pipe whether it may read a vtable: where a test leaves no descriptor it would report objects that are sound.
  if(REKINDLE_SANITIZE MATCHES undefined)
    target_compile_options(rekindle_flags INTERFACE -fno-sanitize=vptr)
  endif()
  # ThreadSanitizer does not see fences. Ours order atomics of the control block against each other, which it never reports.
  target_compile_options(rekindle_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
endif()

# tests/mutate changes them again and again: compiled each on its own, beside the batches of a unity build.
set(REKINDLE_ALONE "" CACHE STRING "Sources, from the root of the tree, that are in no batch")

# rekindle_library(name SOURCES a.cc b.cc LINKS x y): a static library of one folder.
function(rekindle_library name)
  cmake_parse_arguments(LIBRARY "" "" "SOURCES;LINKS" ${ARGN})
  if(LIBRARY_SOURCES)
    foreach(source ${LIBRARY_SOURCES})
      file(RELATIVE_PATH place ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      if(place IN_LIST REKINDLE_ALONE)
        set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endforeach()
    add_library(${name} STATIC ${LIBRARY_SOURCES})
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wno-error=pedantic>)
    target_link_libraries(${name} PUBLIC ${LIBRARY_LINKS} PRIVATE rekindle_flags)
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${LIBRARY_LINKS})
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
  endif()
endfunction()

# rekindle_protobuf_library(name a.proto b.proto): what protoc writes from .proto files of the calling folder. It is not
# ours to keep free of warnings: a target of its own, and its headers (<folder>/a.pb.h) count as the system's.
function(rekindle_protobuf_library name)
  set(generated ${CMAKE_BINARY_DIR}/generated)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  file(MAKE_DIRECTORY ${generated})
  foreach(proto ${ARGN})
    get_filename_component(stem ${proto} NAME_WE)
    set(files ${generated}/${folder}/${stem}.pb.cc ${generated}/${folder}/${stem}.pb.h)
    add_custom_command(OUTPUT ${files}
      COMMAND protobuf::protoc --cpp_out=${generated} -I ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
      DEPENDS ${proto} VERBATIM)
    list(APPEND all ${files})
  endforeach()
  add_library(${name} STATIC ${all})
  target_compile_options(${name} PRIVATE -w)
  target_include_directories(${name} SYSTEM PUBLIC ${generated})
  target_link_libraries(${name} PUBLIC rekindle_protobuf PRIVATE rekindle_flags)
endfunction()

# rekindle_program(name SOURCES main.cc LINKS x y): an executable under build/PRESET/bin.
function(rekindle_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE ${PROGRAM_LINKS} rekindle_flags)
endfunction()

# rekindle_test(name SOURCES a_test.cc LINKS x y): a GoogleTest program under build/PRESET/test-programs/STAGE.
# The folder of the caller below tests/ is the stage that runs it (tests/unit -> stage unit).
function(rekindle_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} rekindle_source_folder rekindle_flags GTest::gtest_main GTest::gmock)
  file(RELATIVE_PATH below ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" stage "${below}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test-programs/${stage})
endfunction()
