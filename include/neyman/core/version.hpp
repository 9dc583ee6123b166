#pragma once

namespace neyman {

/// The library's version, for example "0.1.0".
const char* version();

}  // namespace neyman
