# Packages: `cpack` in the build directory makes a .deb and a .tar.gz that runs from where it is
# unpacked.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME jdagent)
set(CPACK_PACKAGE_VENDOR "the jdagent authors")
set(CPACK_PACKAGE_CONTACT "the jdagent authors <${PROJECT_NAME}@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Profiles of Java programs with Linux perf")
set(CPACK_PACKAGE_DESCRIPTION
  "An agent that tells perf what code a JVM generates, tools that name a recording's
frames with it, inlined methods included, and jdperf, which does it all.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME jdagent-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What jdperf calls: perf, and what perf annotate calls; the way into a running JVM;
# what loads the program that walks stacks in the kernel.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "linux-perf, binutils, jattach, unzip, python3-minimal, libcurl4, libbpf1")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "default-jdk-headless")
include(CPack)
