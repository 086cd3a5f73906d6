/* The two functions that the ICD loader asks a layer for; the loader drops a layer that
 * fails. */
#include <string.h>

#include "opencl/layer.h"

#define LAYER_EXPORT __attribute__((visibility("default")))

cl_icd_dispatch ocl_next;

static cl_icd_dispatch table;
static _Atomic int in_force;

LAYER_EXPORT int sluice_layer_in_force(void);

/* 1 once the loader has taken our dispatch table: asked by the forwarding library. */
int sluice_layer_in_force(void)
{
    return atomic_load(&in_force);
}

LAYER_EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info param_name,
                                               size_t param_value_size, void *param_value,
                                               size_t *param_value_size_ret)
{
    static const char name[] = "sluice";
    cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    switch (param_name) {
    case CL_LAYER_API_VERSION:
        return ocl_info_put(&version, sizeof(version), param_value_size, param_value,
                            param_value_size_ret);
    case CL_LAYER_NAME:
        return ocl_info_put(name, sizeof(name), param_value_size, param_value,
                            param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

LAYER_EXPORT cl_int CL_API_CALL clInitLayer(cl_uint num_entries,
                                            const cl_icd_dispatch *target_dispatch,
                                            cl_uint *num_entries_ret,
                                            const cl_icd_dispatch **layer_dispatch_ret)
{
    size_t slots = sizeof(cl_icd_dispatch) / sizeof(void *);
    size_t have = num_entries < slots ? num_entries : slots;
    memcpy(&ocl_next, target_dispatch, have * sizeof(void *));
    table = ocl_next;
    ocl_fill_table(&table);
    *num_entries_ret = (cl_uint)slots;
    *layer_dispatch_ret = &table;
    atomic_store(&in_force, 1);
    return CL_SUCCESS;
}
