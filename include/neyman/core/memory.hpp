#pragma once

namespace neyman {

/// Tells the C library to keep freed memory for the next allocation instead of giving it back to
/// the system: blocks of up to 32 MiB come from a heap that shrinks only where more than 64 MiB at
/// its end are free. Toys and fits allocate the same sizes again and again, and new pages cost them
/// a third of their time. For programs; the command line calls it. Does nothing where the C library
/// has no such setting.
void keep_freed_memory();

}  // namespace neyman
