/* Owns one number: the memory of this machine. */
#include "mem_total.h"

#include <stdio.h>

uint64_t mem_total_bytes(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    unsigned long long kib = 0;
    if (f) {
        if (fscanf(f, "MemTotal: %llu kB", &kib) != 1)
            kib = 0;
        fclose(f);
    }
    return kib * 1024;
}
