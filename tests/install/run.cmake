# Installs into an empty prefix, then configures, builds and runs the foreign project there, and
# asks the installed program for its version.
#
#   cmake -DBUILD=… -DCONSUMER=… -DWORK=… -DGENERATOR=… -DMAKE_PROGRAM=… -DCOMPILER=… -DFLAGS=…
#         -DVERSION=… -P run.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
run(${prefix}/bin/neyman --version)
if(NOT output MATCHES "${VERSION}")
  message(FATAL_ERROR "neyman --version says '${output}', but must name ${VERSION}")
endif()
if(NOT EXISTS ${prefix}/share/neyman/study.schema.json)
  message(FATAL_ERROR "the schema of the study file was not installed")
endif()
foreach(script bash-completion/completions/neyman zsh/site-functions/_neyman)
  if(NOT EXISTS ${prefix}/share/${script})
    message(FATAL_ERROR "${script} was not installed")
  endif()
endforeach()
file(GLOB examples ${prefix}/share/neyman/examples/*/study.toml)
if(NOT examples)
  message(FATAL_ERROR "no example was installed")
endif()
