# Everything comes from the system (Debian and Ubuntu package names are in scripts/packages.txt); nothing is fetched.
find_package(nlohmann_json 3.10 REQUIRED)
find_package(fmt REQUIRED)
find_package(cxxopts REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers only
find_path(RANDOM123_INCLUDE Random123/philox.h REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
if(LRA_TRAINING)
  find_package(TBB REQUIRED)
  find_package(dnnl REQUIRED)  # -Ddnnl_DIR=... chooses one
  if(dnnl_VERSION VERSION_LESS 2.6)
    message(FATAL_ERROR "oneDNN ${dnnl_VERSION} is too old: 2.6 or newer (-Ddnnl_DIR=... chooses one)")
  endif()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  find_package(hwy REQUIRED)
endif()
