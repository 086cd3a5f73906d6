/* Asking the API and decoding what it answers. */
#include "fetch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

#define CALL_MS 15000 /* an agent that takes longer to list is not well */

/* The list under `key`, and room for its items of `size`. */
static int take_list(const json_t *answer, const char *key, size_t size,
                     const json_t **list, void **out, struct sl_err *err)
{
    *list = json_object_get(answer, key);
    if (!json_is_array(*list))
        return sl_fail(err, SL_PROTOCOL, "the agent's answer has no list \"%s\"", key);
    *out = calloc(json_array_size(*list) + 1, size);
    return *out ? 0 : sl_fail(err, SL_INTERNAL, "out of memory");
}

int decode_devices(const json_t *answer, struct device **out, size_t *count,
                   struct sl_err *err)
{
    const json_t *list;
    AUTO_FREE void *memory = NULL;
    int rc = take_list(answer, "devices", sizeof **out, &list, &memory, err);
    struct device *items = memory;

    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = device_from_json(json_array_get(list, i), &items[i], err);
    if (rc < 0)
        return rc;
    *count = json_array_size(list);
    *out = TAKE_PTR(memory);
    return 0;
}

int decode_leases(const json_t *answer, const char *key, struct lease **out, size_t *count,
                  struct sl_err *err)
{
    const json_t *list;
    AUTO_FREE void *memory = NULL;
    int rc = take_list(answer, key, sizeof **out, &list, &memory, err);
    struct lease *items = memory;

    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = lease_from_json(json_array_get(list, i), &items[i], err);
    if (rc < 0)
        return rc;
    *count = json_array_size(list);
    *out = TAKE_PTR(memory);
    return 0;
}

int fetch_json(struct cli *cli, const char *path, json_t **out, struct sl_err *err)
{
    return client_call(cli->client, "GET", path, NULL, CALL_MS, out, NULL, err);
}

int fetch_devices(struct cli *cli, struct device **out, size_t *count, struct sl_err *err)
{
    AUTO_JSON json_t *answer = NULL;
    int rc = fetch_json(cli, "/v1/devices", &answer, err);
    return rc < 0 ? rc : decode_devices(answer, out, count, err);
}

int fetch_leases(struct cli *cli, bool all, struct lease **out, size_t *count,
                 struct sl_err *err)
{
    AUTO_JSON json_t *answer = NULL;
    int rc = fetch_json(cli, all ? "/v1/leases?all=1" : "/v1/leases", &answer, err);
    return rc < 0 ? rc : decode_leases(answer, "leases", out, count, err);
}

int fetch_lease(struct cli *cli, const char *id, struct lease *out, struct sl_err *err)
{
    AUTO_JSON json_t *answer = NULL;
    AUTO_BUF struct buf path = { 0 };

    buf_add(&path, "/v1/leases/");
    path_add_segment(&path, id);
    if (buf_failed(&path))
        return sl_fail(err, SL_INTERNAL, "out of memory");
    int rc = fetch_json(cli, path.text, &answer, err);
    return rc < 0 ? rc : lease_from_json(answer, out, err);
}

void path_add_segment(struct buf *path, const char *word)
{
    for (; *word; word++) {
        if (isalnum((unsigned char)*word) || strchr("-_.~", *word))
            buf_add_bytes(path, word, 1);
        else
            buf_addf(path, "%%%02X", (unsigned char)*word);
    }
}
