#include "tasks/image.h"

#include "datasets/image/find.h"
#include "datasets/image/reader.h"
#include "lib/util/check.h"

namespace lra {

ImageTask::ImageTask()
    : Task({.name = "image",
            .title = "Image: what a grey CIFAR-10 picture shows, pixel by pixel, 1024 tokens, 10 classes",
            .vocabulary = 512,
            .classes = image::kClasses,
            .pictures = true,
            .validations = {"tenth"},
            .data_help =
                "cifar-10-binary.tar.gz as it is, or the folder cifar-10-batches-bin that it unpacks to, or up "
                "to four levels above either; needed (lra-data sources says where it is had)"}) {}

DataPlace ImageTask::locate(const DataChoice& choice) const {
  if (!choice.path) throw UsageError("--data: needed, Image has no generator; {}", image::kRight);
  const std::filesystem::path path = std::filesystem::absolute(image::find_set(*choice.path)).lexically_normal();
  return {.path = path, .generated = false, .source = path.string(), .choice = choice};
}

TaskData ImageTask::read(const DataPlace& place, const DataRequest& request, Log&, ProgressMode) const {
  image::Splits splits = image::read_set(place.path, {.max_length = request.max_length,
                                                      .limit_train = request.limit_train,
                                                      .limit_eval = request.limit_eval,
                                                      .strict = request.strict,
                                                      .shifted = request.pixel_tokens == "shifted",
                                                      .want_train = request.want_train,
                                                      .want_validation = request.want_validation,
                                                      .want_test = request.want_test});
  return {std::move(splits.train), std::move(splits.validation), std::move(splits.test)};
}

std::string ImageTask::validation_text(const std::string&) const {
  return "the last tenth of the training rows, in file order";
}

}  // namespace lra
