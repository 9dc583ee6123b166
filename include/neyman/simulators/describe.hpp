#pragma once

#include <string>

namespace neyman {

class Distribution;

/// What a simulator is, in a line for people: its kind, and of those that are not ours the command
/// line, the library or the files (without their folders); of a composition, its parts:
///
///   command: python3 simulate.py {alpha} {n} {seed} {output}
///   plugin: libsimulate.so
///   files: a.csv, b.csv and 13 more
///   mixture of background (files: background.csv) and signal (normal)
///   join (normal, exponential)
std::string describe(const Distribution& simulator);

}  // namespace neyman
