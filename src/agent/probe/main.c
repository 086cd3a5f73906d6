/* Owns the command line of sluice-probe. */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

static const struct {
    const char *name;
    json_t *(*probe)(void);
} probes[] = {
    { "opencl", probe_opencl },
};

static int usage(void)
{
    fprintf(stderr, "usage: sluice-probe --backend opencl [--json]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *name = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            name = argv[++i];
        else if (strcmp(argv[i], "--json") != 0)
            return usage();
    }
    for (size_t i = 0; name && i < ARRAY_LEN(probes); i++) {
        if (strcmp(probes[i].name, name) != 0)
            continue;
        json_t *found = probes[i].probe();
        int rc = json_dumpf(found, stdout, JSON_INDENT(1));
        printf("\n");
        /* No exit handlers: a driver's own may hang after everything was said. */
        fflush(stdout);
        _Exit(rc == 0 && !ferror(stdout) ? 0 : 1);
    }
    return usage();
}
