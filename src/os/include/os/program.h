/*
 * From a program's name to the file that is executed, and what is said where
 * there is none.
 *
 * The search is execvp()'s, but a file that the kernel refuses is not handed to
 * /bin/sh, and of several failures that of the file that was meant is told.
 */
#ifndef OS_PROGRAM_H
#define OS_PROGRAM_H

#include <stddef.h>

/* Hands each file that `name` may mean, by PATH, to `try`, which answers 0 or an errno,
 * until one fits.  0, or what a shell would say: 126 found but not executed, 127 not
 * found, with `why`. */
int program_search(const char *name, int (*try)(const char *path, void *ctx), void *ctx,
                   char *why, size_t size);

/* The same without executing: is there such a file, and may we execute it?  Whether the
 * kernel takes it, only the kernel knows. */
int program_check(const char *name, char *why, size_t size);

#endif
