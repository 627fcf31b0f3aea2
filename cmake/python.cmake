# The interpreter that the Python packages are built for, and that fleetrun starts .py scripts with: the user's own
# `python3` where it has NumPy and headers, else Debian's. -DFLEETX_PYTHON=/path/to/python3 names another.
set(python_probe "import numpy, os, sysconfig; assert os.path.exists(sysconfig.get_paths()['include'] + '/Python.h')")
if(SKBUILD AND Python_EXECUTABLE)  # pip wheel: its own
  set(FLEETX_PYTHON ${Python_EXECUTABLE} CACHE FILEPATH "Interpreter of the Python packages" FORCE)
  set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
endif()
if(NOT FLEETX_PYTHON)
  execute_process(COMMAND sh -c "python3 -c 'import sys; print(sys.executable)'" OUTPUT_VARIABLE users_python
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(FLEETX_PYTHON /usr/bin/python3 CACHE FILEPATH "Interpreter of the Python packages" FORCE)
  if(users_python)
    execute_process(COMMAND ${users_python} -c "${python_probe}" RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
      set(FLEETX_PYTHON ${users_python} CACHE FILEPATH "Interpreter of the Python packages" FORCE)
    endif()
  endif()
endif()
# What fleetrun starts scripts with. A wheel is installed into interpreters that are not known here.
set(FLEETX_PYTHON_COMMAND ${FLEETX_PYTHON})
if(SKBUILD)
  set(FLEETX_PYTHON_COMMAND python3)
endif()
