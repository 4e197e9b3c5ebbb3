// Where the binary version of CIFAR-10 lies (Krizhevsky 2009): cifar-10-binary.tar.gz as it is had, or the folder
// cifar-10-batches-bin that it unpacks to.
#pragma once

#include <array>
#include <filesystem>

namespace lra::image {

// What is needed and where it is had, the end of an error line.
inline constexpr const char* kRight =
    "give cifar-10-binary.tar.gz as it is (https://www.cs.toronto.edu/~kriz/cifar.html, the binary version), the "
    "folder "
    "cifar-10-batches-bin that it unpacks to (with data_batch_1.bin to data_batch_5.bin and test_batch.bin), or one up "
    "to four levels above either";

// In the order of rows: five of training, one of test.
inline constexpr std::array<const char*, 6> kBatches = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
inline constexpr size_t kTrainBatches = 5;

// The folder with the six batches, or an archive: `root` itself (any archive name), else the only one up to four levels
// below it (of archives those whose name begins with "cifar-10-binary"). InputError where there is none, where a batch
// is missing or no file, or where there are several (naming two).
std::filesystem::path find_set(const std::filesystem::path& root);

}  // namespace lra::image
