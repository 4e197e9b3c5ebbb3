#include "tasks/text.h"

#include "datasets/text/find.h"
#include "datasets/text/reader.h"
#include "lib/util/check.h"

namespace lra {

TextTask::TextTask()
    : Task({.name = "text",
            .title = "Text: is a film review good or bad, byte by byte, up to 4000 tokens, 2 classes",
            .vocabulary = 512,
            .classes = 2,
            .validations = {"tenth", "test"},
            .data_help = "aclImdb_v1.tar.gz as it is, or the folder aclImdb that it unpacks to, or up to four levels "
                         "above either; needed (lra-data sources says where it is had)"}) {}

DataPlace TextTask::locate(const DataChoice& choice) const {
  if (!choice.path) throw UsageError("--data: needed, Text has no generator; {}", text::kRight);
  const std::filesystem::path path = std::filesystem::absolute(text::find_set(*choice.path)).lexically_normal();
  return {.path = path, .generated = false, .source = path.string(), .choice = choice};
}

TaskData TextTask::read(const DataPlace& place, const DataRequest& request, Log&, ProgressMode) const {
  text::Splits splits = text::read_set(place.path, {.max_length = request.max_length,
                                                    .limit_train = request.limit_train,
                                                    .limit_eval = request.limit_eval,
                                                    .strict = request.strict,
                                                    .validation_is_test = request.validation == "test",
                                                    .want_train = request.want_train,
                                                    .want_validation = request.want_validation,
                                                    .want_test = request.want_test});
  return {std::move(splits.train), std::move(splits.validation), std::move(splits.test)};
}

std::string TextTask::validation_text(const std::string& validation) const {
  return validation == "test" ? "test split (the originals' protocol; selection on test)"
                              : "a tenth of the training reviews of each class, by hash";
}

}  // namespace lra
