# jd_install_text(FILE DIRECTORY): installs a text that says /usr/local/lib/libjdagent.so, cmake's own default,
# with the path that the agent has in this installation, which is known when it is made only (--prefix).
function(jd_install_text file directory)
  get_filename_component(name ${file} NAME)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(made ${CMAKE_CURRENT_BINARY_DIR}/installed/${name})
  install(CODE "
    file(READ \"${source}\" text)
    get_filename_component(library \"${CMAKE_INSTALL_LIBDIR}/libjdagent.so\" ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
    string(REPLACE \"/usr/local/lib/libjdagent.so\" \"\${library}\" text \"\${text}\")
    file(WRITE \"${made}\" \"\${text}\")")
  install(FILES ${made} DESTINATION ${directory})
endfunction()
