# `find_package(tilecore)` gives the target tilecore::tilecore: the folder of the headers, and nothing to link.
if(NOT TARGET tilecore::tilecore)
    add_library(tilecore::tilecore INTERFACE IMPORTED)
    set_target_properties(tilecore::tilecore PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}")
endif()
