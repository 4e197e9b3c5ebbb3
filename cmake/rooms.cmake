# One static library a room: lra_room(NAME SOURCES ... DEPENDS ...). Headers are included from the repository's root
# ("lib/util/check.h"), so that every include names its room; tests/house/include_rules.py holds the rooms to their order.
add_library(lra_flags INTERFACE)
# Of the C++ compiler alone: nvcc knows none of them.
function(lra_flags)
  foreach(flag ${ARGN})
    target_compile_options(lra_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:${flag}>)
  endforeach()
endfunction()
lra_flags(-Wall -Wextra -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  lra_flags(-Wno-restrict)  # false on std::string of GCC 12 (GCC bug 105651)
endif()
# The same bits on every run: no contraction or reassociation left to the compiler.
lra_flags(-ffp-contract=off)
if(LRA_SANITIZE)
  lra_flags(-fsanitize=${LRA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(lra_flags INTERFACE -fsanitize=${LRA_SANITIZE})
endif()
if(LRA_FUZZ)  # readers are what is fuzzed: vector code for the baseline alone
  target_compile_definitions(lra_flags INTERFACE HWY_COMPILE_ONLY_STATIC)
elseif(LRA_FEW_INSTRUCTION_SETS)
  target_compile_definitions(lra_flags INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3|HWY_AVX3_DL)")
else()  # AVX-512, AVX2 and the baseline: each set takes its share of a build, and x86 CPUs without AVX2 are rare
  target_compile_definitions(lra_flags INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL)")
endif()
if(LRA_FUZZ)  # libFuzzer follows which code an input reaches
  lra_flags(-fsanitize=fuzzer-no-link)
endif()
target_include_directories(lra_flags INTERFACE ${PROJECT_SOURCE_DIR})

function(lra_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(lra_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(lra_${name} PUBLIC lra_flags ${ROOM_DEPENDS})
endfunction()

# Where readers are fuzzed, a room's arithmetic is left without instrumentation, which takes a sixth of the time to
# compile: all its sources but the READERS.
function(lra_arithmetic name)
  cmake_parse_arguments(ROOM "" "" "READERS" ${ARGN})
  if(LRA_FUZZ)
    get_target_property(sources lra_${name} SOURCES)
    list(REMOVE_ITEM sources ${ROOM_READERS})
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
  endif()
endfunction()

function(lra_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE lra_flags ${PROGRAM_DEPENDS})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# Adds a rule that makes the C++ file `output` from the JSON files in `folder`: see embed_files.cmake.
function(lra_embed output folder function header)
  file(GLOB embedded CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.json)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUTPUT=${output} -DFUNCTION=${function} -DHEADER=${header}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    DEPENDS ${embedded} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake VERBATIM)
endfunction()
