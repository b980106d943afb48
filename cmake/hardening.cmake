# What ships is hardened: the preset `release`. A buffer that overflows ends the program, addresses are random, and nothing that
# the loader has written can be written again. tests/abi/shipped_files_test.cc reads from the files that it is so.
option(REKINDLE_HARDENED "Hardened as it ships" OFF)
if(REKINDLE_HARDENED)
  # Undefined first: some distributions' compilers define it by themselves.
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection)
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
endif()
