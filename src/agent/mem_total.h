/* MemTotal of /proc/meminfo in bytes; 0 if it cannot be read. */
#ifndef AGENT_MEM_TOTAL_H
#define AGENT_MEM_TOTAL_H

#include <stdint.h>

uint64_t mem_total_bytes(void);

#endif
