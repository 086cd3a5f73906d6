/* Answers for the addresses of extension functions: our wrappers, the driver's, or none. */
#include <string.h>

#include "opencl/layer.h"

static void *fn_address(const struct ocl_fn_row *row, void *real)
{
    if (row->kind == OCL_FN_HIDE)
        return NULL;
    if (row->kind == OCL_FN_PASS || ocl_test_pass(row->name))
        return real;
    /* One address per function: a second platform with another one is not offered it. */
    void (*none)(void) = NULL;
    void (*address)(void) = (void (*)(void))real;
    _Atomic(void (*)(void)) *next = (_Atomic(void (*)(void)) *)row->next;
    if (!atomic_compare_exchange_strong(next, &none, address) && none != address)
        return NULL;
    return (void *)row->wrapper;
}

static void *address_of(const char *name, void *real)
{
    if (!name || !real)
        return NULL;
    for (const struct ocl_fn_row *row = ocl_fn_rows; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return fn_address(row, real);
    for (const struct ocl_core_row *row = ocl_core_rows; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row->wrapper && !ocl_test_pass(name) ? (void *)row->wrapper : real;
    ocl_may_pass(); /* counts */
    return NULL;
}

void *ocl_clGetExtensionFunctionAddress(const char *function_name)
{
    if (!ocl_next.clGetExtensionFunctionAddress)
        return NULL;
    return address_of(function_name, ocl_next.clGetExtensionFunctionAddress(function_name));
}

void *ocl_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                   const char *function_name)
{
    return address_of(function_name, ocl_next.clGetExtensionFunctionAddressForPlatform(
                                         platform, function_name));
}
