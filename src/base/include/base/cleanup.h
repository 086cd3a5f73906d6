/*
 * Ownership inside one function: what is opened here is closed here, on every
 * path, unless it is handed on with TAKE_*.
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}
static inline void cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
static inline void cleanup_fclose(FILE **f)
{
    if (*f)
        fclose(*f);
}

#define AUTO_FREE   __attribute__((cleanup(cleanup_free)))
#define AUTO_CLOSE  __attribute__((cleanup(cleanup_close)))
#define AUTO_FCLOSE __attribute__((cleanup(cleanup_fclose)))

/* Hand on: the variable gives up what it held. */
/* clang-format off */
#define TAKE_FD(fd)  ({ int taken_ = (fd); (fd) = -1; taken_; })
#define TAKE_PTR(p)  ({ __typeof__(p) taken_ = (p); (p) = NULL; taken_; })
/* clang-format on */

#endif
