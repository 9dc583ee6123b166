#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "neyman/core/error.hpp"
#include "neyman/data/atomic_file.hpp"

namespace neyman::example {

/// Compares a text with a file in the test data. With NEYMAN_UPDATE_GOLDEN set in the environment,
/// writes the file instead.
inline void expect_golden(const std::string& file, const std::string& text) {
  const std::string path = std::string(NEYMAN_TEST_DATA) + '/' + file;
  if (std::getenv("NEYMAN_UPDATE_GOLDEN") != nullptr) {
    write_file_atomically(path, text);
    return;
  }
  EXPECT_EQ(text, read_file(path)) << "If the change is wanted: NEYMAN_UPDATE_GOLDEN=1 and again.";
}

}  // namespace neyman::example
