// Checkpoints: there and back, same bytes for the same content, and a line for each way a file can be wrong.
#include "lib/training/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lib/tensor/safetensors.h"
#include "lib/util/check.h"
#include "lib/util/files.h"
#include "tests/support/models.h"

namespace lra {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest()
      : folder_(std::filesystem::temp_directory_path() / fmt::format("lra-checkpoint-test-{}", getpid())),
        path_(folder_ / "model.safetensors"),
        model_(small_config()) {
    std::filesystem::create_directories(folder_);
    model_.initialise(4);
  }
  ~CheckpointTest() override { std::filesystem::remove_all(folder_); }

  // Writes the model with one change to its tensors.
  template <class Change>
  void write_changed(Change&& change) {
    std::vector<TensorRef> tensors;
    for (const ParameterInfo& info : model_.layout().all()) {
      tensors.push_back(
          {info.name, info.shape,
           model_.parameters().subspan(static_cast<size_t>(info.offset), static_cast<size_t>(info.size))});
    }
    change(tensors);
    write_safetensors(path_, {}, tensors);
  }

  // What load_model says, and that it leaves the model alone.
  std::string load_error() {
    Classifier other(small_config());
    other.initialise(5);
    const std::vector<float> before(other.parameters().begin(), other.parameters().end());
    std::string message = "loaded";
    try {
      load_model(path_, other);
    } catch (const InputError& error) {
      message = error.what();
      EXPECT_EQ(error.exit_code(), 1);
      EXPECT_TRUE(std::ranges::equal(before, other.parameters()));
    }
    return message;
  }

  std::filesystem::path folder_, path_;
  Classifier model_;
};

TEST_F(CheckpointTest, ThereAndBack) {
  save_model(path_, model_);
  Classifier other(read_model_config(path_));
  EXPECT_EQ(other.config(), model_.config());
  load_model(path_, other);
  EXPECT_TRUE(std::ranges::equal(other.parameters(), model_.parameters()));
  const std::string bytes = read_file(path_);
  save_model(folder_ / "again.safetensors", other);
  EXPECT_EQ(read_file(folder_ / "again.safetensors"), bytes);
}

TEST_F(CheckpointTest, MetadataIsWhatPyTorchExpects) {
  save_model(path_, model_);
  const SafetensorsFile file = read_safetensors(path_);
  EXPECT_EQ(file.metadata.at("format"), "pt");
  EXPECT_EQ(file.metadata.size(), 2u);
  EXPECT_EQ(file.tensors.size(), model_.layout().all().size());
}

TEST_F(CheckpointTest, ErrorsNameFileAndTensor) {
  write_changed([](std::vector<TensorRef>&) {});
  EXPECT_EQ(load_error(), "loaded");
  write_changed([](std::vector<TensorRef>& tensors) {
    std::erase_if(tensors, [](const TensorRef& tensor) { return tensor.name == "head_in.bias"; });
  });
  EXPECT_EQ(load_error(), path_.string() + ": tensor head_in.bias is missing");
  write_changed([](std::vector<TensorRef>& tensors) {
    tensors.push_back({"head_extra.bias", {24}, tensors.back().values.subspan(0, 0)});
    tensors.back().shape = {0};
  });
  EXPECT_EQ(load_error(), path_.string() + ": tensor head_extra.bias is not part of the model");
  write_changed([](std::vector<TensorRef>& tensors) {
    for (TensorRef& tensor : tensors) {
      if (tensor.name == "head_in.weight") std::swap(tensor.shape[0], tensor.shape[1]);
    }
  });
  EXPECT_EQ(load_error(), path_.string() + ": tensor head_in.weight has shape (16, 24), the model's is (24, 16)");
}

TEST_F(CheckpointTest, TruncatedFileIsRefused) {
  save_model(path_, model_);
  const std::string bytes = read_file(path_);
  for (const size_t keep : {size_t{0}, size_t{7}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes.substr(0, keep);
    const std::string message = load_error();
    EXPECT_TRUE(message.starts_with(path_.string())) << keep << " bytes: " << message;
  }
}

TEST_F(CheckpointTest, MissingFileIsNamed) { EXPECT_NE(load_error().find(path_.string()), std::string::npos); }

TEST_F(CheckpointTest, ConfigurationErrorsNameTheFile) {
  const auto message = [&](const std::map<std::string, std::string>& metadata) -> std::string {
    write_safetensors(path_, metadata, {});
    try {
      read_model_config(path_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_EQ(message({}), path_.string() + ": metadata has no entry \"lra\": not a checkpoint of this program");
  EXPECT_TRUE(message({{"lra", "{"}}).starts_with(path_.string() + ": metadata entry \"lra\":1:2: not JSON"));
  const std::string deep(100'000, '[');
  EXPECT_EQ(message({{"lra", "{\"task\":" + deep}}),
            path_.string() + ": metadata entry \"lra\": nested deeper than 64 levels");
  EXPECT_EQ(message({{"lra", "{}"}}), path_.string() + ": model configuration: key \"task\" is missing");
}

// A few bytes that call for terabytes are refused before anything of that size is made.
TEST_F(CheckpointTest, ConfigurationNeedsItsTensors) {
  ModelConfig config = small_config();
  config.dim = config.qkv_dim = config.hidden = 1 << 20;
  config.padded_length = 256;
  config.max_length = 200;
  config.layers = 1000;
  const auto message = [&] {
    write_safetensors(path_, {{"lra", dump_json(config.to_json())}}, {});
    try {
      read_model_config(path_);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  EXPECT_EQ(message(), path_.string() + ": tensor encoder.token_embedding.weight is missing");
  config.positions = "sinusoidal";
  config.padded_length = 1 << 24;
  EXPECT_EQ(message(),
            path_.string() + ": model configuration: padded_length is 16777216, must be at most 256 with dim 1048576");
}

TEST_F(CheckpointTest, OptimizerThereAndBack) {
  const size_t size = model_.parameters().size();
  std::vector<float> m(size), v(size), m2(size), v2(size);
  for (size_t i = 0; i < size; ++i) m[i] = static_cast<float>(i), v[i] = 0.5f * static_cast<float>(i);
  save_optimizer(path_, model_, m, v, 1234);
  EXPECT_EQ(load_optimizer(path_, model_, m2, v2), 1234);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
  save_model(path_, model_);
  EXPECT_THROW(load_optimizer(path_, model_, m2, v2), InputError);
  EXPECT_EQ(m, m2);
}

}  // namespace
}  // namespace lra
