/* Turns the bytes of one OpenCL object into reservations on the lease's devices. */
#include "charge.h"

uint32_t charge_slots(cl_context context)
{
    struct ocl_session *s = ocl_session();
    cl_device_id devices[64];
    size_t size = 0;
    if (!context || ocl_next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(devices),
                                              devices, &size) != CL_SUCCESS)
        return 0;
    uint32_t mask = 0;
    for (size_t i = 0; i < size / sizeof(devices[0]); i++) {
        const struct ocl_device *d = ocl_device_find(s, devices[i]);
        if (d)
            mask |= 1u << d->slot;
    }
    return mask;
}

bool charge_reserve(struct charge *c, uint32_t slot_mask, uint64_t bytes)
{
    struct ocl_session *s = ocl_session();
    c->bytes = bytes;
    c->slot_mask = slot_mask;
    c->count = 0;
    for (uint32_t slot = 0; bytes > 0 && slot < PROTO_MAX_SLOTS; slot++) {
        uint64_t free_bytes;
        if (!(slot_mask & 1u << slot))
            continue;
        if (link_reserve(&s->link, slot, bytes, &c->part[c->count], &free_bytes) != 0) {
            charge_abort(c);
            return false;
        }
        c->count++;
    }
    return true;
}

void charge_commit(const struct charge *c, uint64_t bytes)
{
    for (uint32_t i = 0; i < c->count; i++)
        link_commit(&ocl_session()->link, &c->part[i], bytes);
}

void charge_abort(const struct charge *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        link_abort(&ocl_session()->link, &c->part[i]);
}

void charge_refund(uint32_t slot_mask, uint64_t bytes)
{
    for (uint32_t slot = 0; bytes > 0 && slot < PROTO_MAX_SLOTS; slot++)
        if (slot_mask & 1u << slot)
            link_free(&ocl_session()->link, slot, bytes);
}

bool charge_above_maximum(uint32_t slot_mask, uint64_t bytes)
{
    struct ocl_session *s = ocl_session();
    for (uint32_t i = 0; i < s->device_count; i++)
        if ((slot_mask & 1u << s->device[i].slot) &&
            bytes <= ocl_max_alloc_bytes(s, &s->device[i]))
            return false;
    return slot_mask != 0;
}
