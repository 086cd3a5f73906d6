/* The client and the agent's start, replaced by recorded answers. */
#include "fake_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/start.h"
#include "client/client.h"

static const char *served;
static bool started;
static char last_body[1024];

void fake_api_serve(const char *dir)
{
    served = dir;
    started = false;
    last_body[0] = 0;
}

const char *fake_api_last_body(void)
{
    return last_body;
}

bool fake_api_was_started(void)
{
    return started;
}

bool agent_is_running(const struct rundir *r)
{
    return served || started;
}

bool agent_left_traces(const struct rundir *r)
{
    return false;
}

int agent_fail_missing(const struct rundir *r, struct sl_err *err)
{
    return sl_fail(err, SL_UNAVAILABLE,
                   "no agent runs in %s; sluice run or sluice up starts one", r->path);
}

int agent_start(const struct rundir *r, const struct start_options *o, struct sl_err *err)
{
    if (served)
        return 1;
    started = true;
    served = RECORDED "/idle";
    return 0;
}

int agent_exec(const struct rundir *r, const struct start_options *o, struct sl_err *err)
{
    return sl_fail(err, SL_UNAVAILABLE, "no program here");
}

struct client {
    int unused;
};

struct client *client_create(const char *socket_path, struct sl_err *err)
{
    return calloc(1, sizeof(struct client));
}

void client_destroy(struct client *c)
{
    free(c);
}

/* "/v1/leases?all=1" -> "DIR/GET-v1-leases-all.json" */
static void file_of(const char *method, const char *path, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/%s", served, method);
    for (const char *p = path; *p && *p != '='; p++)
        out[n++] = *p == '/' || *p == '?' ? '-' : *p;
    snprintf(out + n, size - (size_t)n, ".json");
}

int client_call(struct client *c, const char *method, const char *path, const json_t *body,
                uint64_t timeout_ms, json_t **out, json_t **problem, struct sl_err *err)
{
    char file[512];
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    snprintf(last_body, sizeof last_body, "%s", text ? text : "");
    free(text);
    file_of(method, path, file, sizeof file);
    json_t *answer = json_load_file(file, 0, NULL);
    if (!answer)
        return sl_fail(err, SL_NOT_FOUND, "no such thing: %s", path);
    const char *code = json_string_value(json_object_get(answer, "code"));
    if (code) {
        int rc = sl_fail(err, sl_code_parse(code), "%s",
                         json_string_value(json_object_get(answer, "detail")));
        if (problem)
            *problem = answer;
        else
            json_decref(answer);
        return rc;
    }
    if (out)
        *out = answer;
    else
        json_decref(answer);
    return 0;
}

int client_get_text(struct client *c, const char *path, char **out, size_t *len,
                    struct sl_err *err)
{
    *out = strdup("first line\nlast line\n");
    *len = strlen(*out);
    return 0;
}
