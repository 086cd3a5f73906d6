/* The cluster: its shape from "8x8" or a node list, and searches for free devices. */
#include "sim/cluster.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sim/csv.h"

/* ---- its shape ---- */

static int add_node(struct cluster *p, uint32_t devices, const char *nodes,
                    struct sl_err *err)
{
    if (devices > CLUSTER_MAX_DEVICES - p->device_count)
        return sl_fail(err, SL_INVALID, "%.80s: more than %u devices", nodes,
                       CLUSTER_MAX_DEVICES);
    p->nodes[p->node_count++] =
        (struct cluster_node){ p->device_count, devices, devices, 0 };
    p->device_count += devices;
    if (devices > p->largest_node)
        p->largest_node = devices;
    return 0;
}

/* The devices, once the nodes are there. */
static int add_devices(struct cluster *p, const char *nodes, struct sl_err *err)
{
    if (!p->device_count)
        return sl_fail(err, SL_INVALID, "%.80s: no node has a device", nodes);
    p->holder = malloc(p->device_count * sizeof *p->holder);
    p->node_of = malloc(p->device_count * sizeof *p->node_of);
    if (!p->holder || !p->node_of)
        return sl_fail(err, SL_INTERNAL, "%.80s: out of memory", nodes);
    p->free = p->device_count;
    for (uint32_t n = 0; n < p->node_count; n++)
        for (uint32_t i = 0; i < p->nodes[n].devices; i++) {
            p->holder[p->nodes[n].first + i] = CLUSTER_FREE;
            p->node_of[p->nodes[n].first + i] = n;
        }
    return 0;
}

static int uniform_nodes(struct cluster *p, uint32_t count, uint32_t devices,
                         const char *nodes, struct sl_err *err)
{
    p->nodes = calloc(count, sizeof *p->nodes);
    int rc = p->nodes ? 0 : sl_fail(err, SL_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = add_node(p, devices, nodes, err);
    return rc;
}

static int listed_nodes(struct cluster *p, const char *path, struct sl_err *err)
{
    static const struct csv_column columns[] = { { "gpu" } };
    AUTO_TEXT struct text text = { 0 };
    struct csv csv;
    int rc = text_open(path, &text, err);
    if (rc < 0)
        return rc;
    csv_begin(&csv, &text, columns, ARRAY_LEN(columns), err);
    p->nodes = csv_array(&csv, sizeof *p->nodes);
    while (csv_next(&csv)) {
        uint32_t devices = (uint32_t)csv_u64(&csv, 0, 0, CLUSTER_MAX_DEVICES);
        if (devices && (rc = add_node(p, devices, path, err)) < 0)
            return rc;
    }
    return csv.rc;
}

/* "30x8": true, and the two numbers are in range. */
static bool is_shape(const char *text, uint32_t *count, uint32_t *devices)
{
    unsigned nodes = 0, each = 0;
    int end = 0;
    if (!isdigit((unsigned char)*text) || strlen(text) > 15 ||
        sscanf(text, "%7ux%7u%n", &nodes, &each, &end) != 2 || text[end])
        return false;
    *count = nodes;
    *devices = each;
    return nodes >= 1 && each >= 1 && nodes <= CLUSTER_MAX_DEVICES;
}

int cluster_open(const char *nodes, struct cluster *out, struct sl_err *err)
{
    struct cluster p = { 0 };
    uint32_t count, devices;
    int rc = is_shape(nodes, &count, &devices)
                 ? uniform_nodes(&p, count, devices, nodes, err)
                 : listed_nodes(&p, nodes, err);
    if (rc == -SL_NOT_FOUND)
        rc = sl_fail(err, SL_NOT_FOUND,
                     "'%.80s' is neither a shape such as 8x8 (nodes x devices) nor a file",
                     nodes);
    if (rc == 0)
        rc = add_devices(&p, nodes, err);
    if (rc < 0)
        cluster_finish(&p);
    else
        *out = p;
    return rc;
}

void cluster_finish(struct cluster *p)
{
    free(p->nodes);
    free(p->holder);
    free(p->node_of);
    *p = (struct cluster){ 0 };
}

/* ---- searches ---- */

/* The first `count` free devices of a node that has them; where to go on. */
static uint32_t *free_of(const struct cluster *p, const struct cluster_node *n,
                         uint32_t count, uint32_t *device)
{
    for (uint32_t d = n->first; count; d++)
        if (p->holder[d] == CLUSTER_FREE) {
            *device++ = d;
            count--;
        }
    return device;
}

static const struct cluster_node *fullest(const struct cluster *p, uint32_t count)
{
    const struct cluster_node *best = NULL;
    for (uint32_t i = 0; i < p->node_count; i++) {
        const struct cluster_node *n = &p->nodes[i];
        if (n->free >= count && (!best || n->free < best->free))
            best = n;
        if (best && best->free == count)
            break;
    }
    return best;
}

static const struct cluster_node *first(const struct cluster *p, uint32_t count)
{
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].free >= count && p->nodes[i].chosen != p->choice)
            return &p->nodes[i];
    return NULL;
}

static const struct cluster_node *emptiest(const struct cluster *p, uint32_t count)
{
    const struct cluster_node *best = NULL;
    for (uint32_t i = 0; i < p->node_count; i++) {
        const struct cluster_node *n = &p->nodes[i];
        if (n->free >= count && n->chosen != p->choice && (!best || n->free > best->free))
            best = n;
    }
    return best;
}

/* Whole nodes for a count that no node has; what is left to find is in *count. */
static uint32_t *whole_nodes(struct cluster *p, uint32_t *count, uint32_t *device)
{
    p->choice++;
    for (uint32_t i = 0; i < p->node_count; i++) {
        struct cluster_node *n = &p->nodes[i];
        if (n->free != n->devices || n->devices > *count)
            continue;
        n->chosen = p->choice;
        device = free_of(p, n, n->devices, device);
        *count -= n->devices;
    }
    return device;
}

typedef const struct cluster_node *choose_node(const struct cluster *p, uint32_t count);

static bool find(struct cluster *p, uint32_t count, uint32_t *device, choose_node *one,
                 choose_node *rest)
{
    if (p->free < count)
        return false;
    choose_node *choose = one;
    if (count > p->largest_node) {
        device = whole_nodes(p, &count, device);
        choose = rest;
        if (!count)
            return true;
    } else {
        p->choice++;
    }
    const struct cluster_node *n = choose(p, count);
    if (n)
        free_of(p, n, count, device);
    return n;
}

bool cluster_find_best(struct cluster *p, uint32_t count, uint32_t *device)
{
    return find(p, count, device, fullest, emptiest);
}

bool cluster_find_first(struct cluster *p, uint32_t count, uint32_t *device)
{
    return find(p, count, device, first, first);
}

bool cluster_find_any(struct cluster *p, uint32_t count, uint32_t *device)
{
    if (p->free < count)
        return false;
    for (uint32_t i = 0; count; i++) {
        const struct cluster_node *n = &p->nodes[i];
        uint32_t some = n->free < count ? n->free : count;
        device = free_of(p, n, some, device);
        count -= some;
    }
    return true;
}

/* ---- holding ---- */

bool cluster_take(struct cluster *p, uint32_t job, const uint32_t *device, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (device[i] >= p->device_count || p->holder[device[i]] != CLUSTER_FREE) {
            while (i--)
                cluster_give(p, device[i]);
            return false;
        }
        p->holder[device[i]] = job;
        p->nodes[p->node_of[device[i]]].free--;
        p->free--;
    }
    return true;
}

void cluster_give(struct cluster *p, uint32_t device)
{
    p->holder[device] = CLUSTER_FREE;
    p->nodes[p->node_of[device]].free++;
    p->free++;
}
