// Validates JSON against results/schema/lra-result-1.schema.json.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "lib/util/files.h"

namespace lra {

class SchemaValidator {
 public:
  explicit SchemaValidator(const std::string& path) {
    const nlohmann::json json = nlohmann::json::parse(read_file(path));
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(json), schema_);
  }

  // What is wrong with `text`; "" when it fits.
  std::string problems(const std::string& text) const {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) return "not JSON";
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    valijson::ValidationResults results;
    if (validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(json), &results)) return "";
    std::ostringstream out;
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
      for (const std::string& part : error.context) out << part;
      out << ": " << error.description << "; ";
    }
    return out.str();
  }

 private:
  valijson::Schema schema_;
};

}  // namespace lra
