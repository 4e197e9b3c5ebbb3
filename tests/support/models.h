// A model small enough for unit tests, with every feature of the recipes.
#pragma once

#include "lib/model/config.h"

namespace lra {

inline ModelConfig small_config() {
  ModelConfig config;
  config.task = "listops";
  config.vocabulary = 20;
  config.classes = 5;
  config.max_length = 40;
  config.padded_length = 64;
  config.dim = 16;
  config.qkv_dim = 16;
  config.hidden = 24;
  return config;
}

}  // namespace lra
