# An overlay port: vcpkg install stook --overlay-ports=PATH/packaging, from the sources that it is in.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

set(cli false)
if("tools" IN_LIST FEATURES)
  set(cli true)
endif()

vcpkg_configure_meson(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -Dtests=disabled -Dbench=disabled -Durcu=disabled -Dlibdw=disabled -Dtop=disabled
    -Dcli=${cli}
)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()

# One kind of libraries is left, as the triplet says.
foreach(folder IN ITEMS "${CURRENT_PACKAGES_DIR}" "${CURRENT_PACKAGES_DIR}/debug")
  if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
    file(GLOB unwanted "${folder}/lib/*.so*")
  else()
    file(GLOB unwanted "${folder}/lib/*.a")
  endif()
  if(unwanted)
    file(REMOVE ${unwanted})
  endif()
endforeach()

vcpkg_cmake_config_fixup(PACKAGE_NAME stook CONFIG_PATH lib/cmake/stook)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
