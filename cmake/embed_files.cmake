# Writes OUTPUT (C++): a function FUNCTION, declared in HEADER, that gives the text of every JSON file in FOLDER by name,
# so that programs need no files of their own.
file(GLOB files ${FOLDER}/*.json)
list(SORT files)
set(text "// Made from ${FOLDER}/*.json.\n#include \"${HEADER}\"\n\nnamespace lra {\n\n")
string(APPEND text "const std::map<std::string, std::string>& ${FUNCTION}() {\n")
string(APPEND text "  static const std::map<std::string, std::string> files{\n")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} content)
  string(APPEND text "      {\"${name}\", R\"lra_file(${content})lra_file\"},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace lra\n")
file(WRITE ${OUTPUT} "${text}")
