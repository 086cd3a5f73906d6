/*
 * Files: whole reads, writes that are there or not there, directories.
 */
#ifndef OS_FILE_H
#define OS_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "core/err.h"

/* The whole file, NUL-terminated, owned by the caller (free); at most `max` bytes. */
int file_read(const char *path, size_t max, char **out, size_t *len, struct sl_err *err);

/* Write to a temporary name beside it, sync, rename: readers see the old or the
 * new content, also after a crash (which may leave "PATH.XXXXXX" beside it).  The
 * draft is counted against RLIMIT_FSIZE: a program ignores SIGXFSZ to see the error. */
int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode,
                      struct sl_err *err);

/* All of it, over short writes and EINTR. */
int file_write_all(int fd, const void *data, size_t len, struct sl_err *err);

int file_make_dir(const char *path, mode_t mode, struct sl_err *err);
int file_copy(const char *from, const char *to, mode_t mode, struct sl_err *err);

/* Remove a directory with what is in it; never follows a link or leaves the file
 * system.  Missing is success. */
int file_remove_tree(const char *path, struct sl_err *err);

/* The directory of the running program, for finding its siblings. */
int file_program_dir(char *out, size_t size, struct sl_err *err);

#endif
