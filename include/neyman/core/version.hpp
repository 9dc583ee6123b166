#pragma once

namespace neyman {

/// The library's version, for example "0.1.0".
const char* version();

/// What it was built with: the compiler and the versions of the libraries that numbers depend on.
const char* built_with();

}  // namespace neyman
