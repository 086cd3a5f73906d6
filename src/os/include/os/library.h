/*
 * Can a program map this library?  Asked before a program is started that
 * depends on it, where a loader would go on without it in silence.
 */
#ifndef OS_LIBRARY_H
#define OS_LIBRARY_H

#include "core/err.h"

/* 0 if the library at `path` can be loaded and has `symbol`; else UNAVAILABLE with
 * the loader's own reason.  Runs its constructors, and a file that is cut short
 * may end the caller by SIGBUS: ask from a process that may die. */
int library_check(const char *path, const char *symbol, struct sl_err *err);

#endif
