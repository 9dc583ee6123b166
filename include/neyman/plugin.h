/*
 * A simulator for neyman as a shared library, in C or any language that can export C functions.
 *
 * This header needs nothing but a C99 or C++ compiler. A plugin defines the three functions
 * that are required and any of the optional ones; a study then says
 *
 *     [simulator]
 *     kind = "plugin"
 *     library = "./libsimulate.so"
 *
 * The interface has a version, NEYMAN_PLUGIN_ABI. It changes only where an older plugin could not
 * be used any more; neyman refuses a plugin of another version and says so.
 */
#ifndef NEYMAN_PLUGIN_H
#define NEYMAN_PLUGIN_H

#include <stdint.h>

#define NEYMAN_PLUGIN_ABI 1

#if defined(__GNUC__)
#define NEYMAN_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define NEYMAN_PLUGIN_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Required: the version this plugin was written for. Write `return NEYMAN_PLUGIN_ABI;`. */
NEYMAN_PLUGIN_EXPORT int neyman_plugin_abi(void);

/* Required: how many numbers an event has, at least 1. */
NEYMAN_PLUGIN_EXPORT int neyman_plugin_features(void);

/*
 * Required: simulates n events at the parameters theta into out, row by row: out[i * features + j]
 * is feature j of event i. Every value must be finite.
 *
 * Random numbers must come from `seed` (0 <= seed < 2^63) alone: the same theta, n and seed give
 * the same events, whatever was asked for before and by how many threads. The events of a call are
 * independent of each other.
 *
 * theta has one value for each parameter: in the order of neyman_plugin_parameter_name where the
 * plugin has it, else in the order of the study.
 *
 * Returns 0, or any other number where it failed: the text in `message`, which holds message_size
 * characters with the closing zero, is then shown to the user.
 */
NEYMAN_PLUGIN_EXPORT int neyman_plugin_sample(const double* theta, int64_t n, int64_t seed,
                                              double* out, char* message, int64_t message_size);

/* Optional: the name of feature i, such as "mass"; without it they are x0, x1, ... */
NEYMAN_PLUGIN_EXPORT const char* neyman_plugin_feature_name(int i);

/*
 * Optional, both or none: how many parameters there are, and their names. They are checked against
 * those of the study and may stand there in another order.
 */
NEYMAN_PLUGIN_EXPORT int neyman_plugin_parameters(void);
NEYMAN_PLUGIN_EXPORT const char* neyman_plugin_parameter_name(int i);

/*
 * Optional: 1 where neyman_plugin_sample may be called by several threads at once. Without it, and
 * where it returns 0, calls are made one at a time.
 */
NEYMAN_PLUGIN_EXPORT int neyman_plugin_thread_safe(void);

#ifdef __cplusplus
}
#endif

#endif
