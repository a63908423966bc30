/*
 * fuzz/mutants.h -- programs with one planted bug each, and what it takes to catch
 * them.
 *
 * fuzz/mutants/NAME.patch is a bug, as a patch of one source file. The build makes
 * bin/mutants/NAME of it: this very program with that bug in the engine. A mutant
 * is caught when it finds a violation, or dies.
 */
#ifndef FUZZ_MUTANTS_H
#define FUZZ_MUTANTS_H

#include <stdbool.h>

/* Run all of them, or the one called `name` (NULL: all), and print a line each. `program`: as
 * this one was called. True: there are some, and all were caught. */
bool mutants_run(const char *program, const char *name, bool json);

#endif
