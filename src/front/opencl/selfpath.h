/*
 * Where the library that contains this code was loaded from.
 *
 * No state; reads /proc/self.  Any thread; not for the hot path.
 */
#ifndef OPENCL_SELFPATH_H
#define OPENCL_SELFPATH_H

#include <stdbool.h>
#include <stddef.h>

/* The path of our own file, as this process sees it. */
bool selfpath_file(char *out, size_t size);

/* The folder that `file` lies in.  In place. */
void selfpath_folder(char *file);

/*
 * When `file` is the target of a bind mount of a single file (the forwarding
 * library standing over the system's libOpenCL.so.1), the path of what was
 * bound, found through another mount of the same file system.
 */
bool selfpath_bound_from(const char *file, char *out, size_t size);

#endif
