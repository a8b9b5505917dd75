# Cross-compiles for aarch64, and runs the tests under qemu-user:
#
#   scripts/aarch64-sysroot.sh DIR
#   cmake -S . -B build-aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DAARCH64_SYSROOT=DIR
#
# The JVMTI headers are the same everywhere, so the host's JDK does. Without a sysroot, with
# -DJDAGENT_TOOL=OFF -DJDAGENT_TESTS=OFF, the agent and libjdwriter alone.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

if(AARCH64_SYSROOT)
  get_filename_component(AARCH64_SYSROOT "${AARCH64_SYSROOT}" ABSOLUTE)
  set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AARCH64_SYSROOT)
  set(CMAKE_SYSROOT ${AARCH64_SYSROOT})
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${AARCH64_SYSROOT})
  set(ENV{PKG_CONFIG_LIBDIR}
    ${AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${AARCH64_SYSROOT}/usr/share/pkgconfig)
  # Programs name their loader and libraries by the machine's own paths. With qemu's -L these would be
  # found as well, but so would "/", and who walks down from there, as jdagent does to the directories
  # it trusts, would be in the sysroot.
  set(libraries ${AARCH64_SYSROOT}/lib/aarch64-linux-gnu:${AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu)
  set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-Wl,--dynamic-linker=${AARCH64_SYSROOT}/lib/ld-linux-aarch64.so.1 -Wl,-rpath,${libraries}")
  set(emulated -E LD_LIBRARY_PATH=${libraries})
else()
  # The compiler's own libc: enough for the agent and libjdwriter.
  set(emulated -L /usr/aarch64-linux-gnu)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The default processor of qemu has SVE, which makes it and HotSpot slow.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu neoverse-n1 ${emulated})
