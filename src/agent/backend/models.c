/* Owns the table of models that can be emulated, with the sizes that their drivers report.
 */
#include "backend.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/macros.h"

/*
 * memory: what the vendor's tool prints as the total, which is not the number in the name.
 * NVIDIA: "nvidia-smi" totals of these cards as listed publicly in
 * github.com/modal-labs/modal-client pull request 2797 (driver 5xx).  a100-80g's reserve:
 * the difference between that total and the 81,251 MiB that older drivers, which hid the
 * reserved part, printed for the same card; the other NVIDIA reserves are the same 0.8 %,
 * rounded up. AMD and Huawei: data-sheet size, reserve guessed at 1 %, marked (g).
 */
static const struct emulated_model models[] = {
    /* name        vendor    model                        arch     memory  rsv  units MHz */
    { "h100-80g", "NVIDIA", "NVIDIA H100 80GB HBM3", "sm_90", 81559, 666, 132, 1980 },
    { "a100-80g", "NVIDIA", "NVIDIA A100-SXM4-80GB", "sm_80", 81920, 669, 108, 1410 },
    { "a100-40g", "NVIDIA", "NVIDIA A100-SXM4-40GB", "sm_80", 40960, 335, 108, 1410 },
    { "l40s", "NVIDIA", "NVIDIA L40S", "sm_89", 46068, 376, 142, 2520 },
    { "a10", "NVIDIA", "NVIDIA A10", "sm_86", 23028, 188, 72, 1695 },
    { "l4", "NVIDIA", "NVIDIA L4", "sm_89", 23034, 188, 58, 2040 },
    { "t4", "NVIDIA", "Tesla T4", "sm_75", 15360, 126, 40, 1590 },
    { "mi210", "AMD", "AMD Instinct MI210", "gfx90a", 65520, 656, 104, 1700 }, /* g */
    { "910b", "Huawei", "Ascend 910B", "ascend910b", 65536, 656, 24, 1800 },   /* g */
};

const struct emulated_model *emulated_model_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(models); i++)
        if (strcasecmp(models[i].name, name) == 0)
            return &models[i];
    return NULL;
}

const char *emulated_model_names(char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(models) && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", models[i].name);
    return out;
}
