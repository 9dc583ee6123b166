# Where there is little to compute, builds are a third faster with less optimisation.
set(NEYMAN_LIGHT_OPTIONS $<$<CONFIG:Release>:-O1>)

# A room is an object library: src/<room>/*.cpp, named one by one. The rooms together make the
# library `neyman`.
#
#   neyman_room(calibration SOURCES histogram.cpp kde.cpp DEPENDS core LIBRARIES Eigen3::Eigen)
#
# LIGHT is for rooms that put words and files together and compute little.
function(neyman_room room)
  cmake_parse_arguments(ARG "LIGHT" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(neyman_${room} OBJECT ${ARG_SOURCES})
  neyman_compile_options(neyman_${room})
  set_target_properties(neyman_${room} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(ARG_LIGHT)
    target_compile_options(neyman_${room} PRIVATE ${NEYMAN_LIGHT_OPTIONS})
    neyman_use_headers(neyman_${room} neyman_light_headers)
  else()
    neyman_use_headers(neyman_${room} neyman_room_headers)
  endif()
  neyman_compile_together(neyman_${room})
  target_include_directories(neyman_${room}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(neyman_${room} PRIVATE ${ARG_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY NEYMAN_ROOMS ${room})
  set_property(GLOBAL APPEND PROPERTY NEYMAN_LIBRARIES ${ARG_LIBRARIES})
  set_property(GLOBAL PROPERTY NEYMAN_DEPENDS_${room} "${ARG_DEPENDS}")
endfunction()

# Kernels that are compiled once for each instruction set: of <name>_<set>.cpp those that this
# architecture has, with their options.
#
#   neyman_kernels(out SOURCES sums_v2.cpp sums_v3.cpp sums_v4.cpp sums_generic.cpp OPTIONS -O3)
function(neyman_kernels out)
  cmake_parse_arguments(ARG "" "" "SOURCES;OPTIONS" ${ARGN})
  set(x86 OFF)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(x86 ON)
  endif()
  set(chosen)
  foreach(source ${ARG_SOURCES})
    string(REGEX REPLACE "^.*_([a-z0-9]+)\\.cpp$" "\\1" isa ${source})
    set(options ${ARG_OPTIONS})
    if(isa STREQUAL "generic")
      if(x86)
        continue()
      endif()
    else()
      if(NOT x86)
        continue()
      endif()
      list(APPEND options -march=x86-64-${isa})
    endif()
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${options}"
      SKIP_PRECOMPILE_HEADERS ON)
    list(APPEND chosen ${source})
  endforeach()
  set(${out} ${chosen} PARENT_SCOPE)
endfunction()

# The rooms a room needs, itself included.
function(neyman_room_closure room out)
  set(todo ${room})
  set(seen)
  while(todo)
    list(POP_FRONT todo next)
    if(NOT next IN_LIST seen)
      list(APPEND seen ${next})
      get_property(more GLOBAL PROPERTY NEYMAN_DEPENDS_${next})
      list(APPEND todo ${more})
    endif()
  endwhile()
  set(${out} ${seen} PARENT_SCOPE)
endfunction()

# Tests of one room: a GoogleTest program that links this room and those it needs, so that a
# room is built and tested without the rest.
#
#   neyman_test(calibration SOURCES histogram_test.cpp kde_test.cpp)
function(neyman_test room)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  set(target test_${room})
  add_executable(${target} ${ARG_SOURCES})
  neyman_compile_options(${target})
  target_compile_options(${target} PRIVATE ${NEYMAN_TEST_OPTIONS})
  neyman_use_headers(${target} neyman_test_headers)
  neyman_compile_together(${target})
  if(NEYMAN_TOGETHER GREATER 1)
    target_compile_options(${target} PRIVATE -Wno-shadow) # of names of the other tests
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  neyman_room_closure(${room} rooms)
  foreach(needed ${rooms})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:neyman_${needed}>)
    get_target_property(libraries neyman_${needed} LINK_LIBRARIES)
    if(libraries)
      target_link_libraries(${target} PRIVATE ${libraries})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main
    neyman_dep::rapidcheck fmt::fmt Threads::Threads ${ARG_LIBRARIES})
  target_compile_definitions(${target} PRIVATE
    NEYMAN_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/${room}/data")
  gtest_discover_tests(${target} TEST_PREFIX ${room}. DISCOVERY_TIMEOUT 60)
endfunction()

# Headers that nearly every source of some targets reads, compiled once for all of them. The
# compiler refuses them where its options differ, so both need the same ones.
#
#   neyman_headers(neyman_test_headers HEADERS <vector> LIBRARIES GTest::gtest OPTIONS -O1)
#   neyman_use_headers(test_core neyman_test_headers)
function(neyman_headers target)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBRARIES;OPTIONS" ${ARGN})
  if(NOT NEYMAN_PRECOMPILE)
    return()
  endif()
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${target}.cpp CONTENT "")
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/${target}.cpp)
  neyman_compile_options(${target})
  target_compile_options(${target} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${target} PRIVATE ${ARG_LIBRARIES})
  target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
endfunction()

function(neyman_use_headers target headers)
  if(NEYMAN_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endif()
endfunction()

# Several sources as one: templates that they share are made once. GCC takes the sources for
# headers then, and warns of members whose types are in an anonymous namespace.
function(neyman_compile_together target)
  if(NEYMAN_TOGETHER GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON
      UNITY_BUILD_BATCH_SIZE ${NEYMAN_TOGETHER})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

function(neyman_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wno-psabi)
  if(NEYMAN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${NEYMAN_SANITIZE}
      -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${NEYMAN_SANITIZE})
  endif()
  if(NEYMAN_COVERAGE)
    # Atomic, because GCC may count a loop's rounds by the counter of its lines, and with threads
    # that counter is not the loop's own: such loops run past their end.
    target_compile_options(${target} PRIVATE --coverage -fprofile-update=atomic)
    target_link_options(${target} PUBLIC --coverage)
  endif()
endfunction()
