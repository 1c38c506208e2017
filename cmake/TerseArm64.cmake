# Toolchain file of the preset arm64: builds for Debian 12 on arm64, on a machine of another kind, with Debian's cross compiler
# and the packages of arm64 that lie beside the machine's own (`deploy/packages.sh arm64`). protoc and
# its plug-in are the machine's own; the programs of this build, tests among them, run with qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
# pkg-config would look among the libraries of this machine.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# libpq's headers are the same for every machine, and only one libpq-dev can be installed.
set(PostgreSQL_LIBRARY_RELEASE /usr/lib/aarch64-linux-gnu/libpq.so.5 CACHE FILEPATH "libpq of arm64")
