/* GET /openapi.json: the routes' table as OpenAPI 3.1. */
#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "routes.h"

static json_t *response(const char *what, const char *type)
{
    return json_pack("{s:s,s:{s:{s:{}}}}", "description", what, "content", type, "schema");
}

static json_t *parameters(const struct route *route)
{
    json_t *list = json_array();
    if (strstr(route->pattern, "{id}"))
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:b,s:{s:s}}", "name", "id", "in", "path",
                                        "required", 1, "schema", "type", "string"));
    if (route->flag)
        json_array_append_new(list, json_pack("{s:s,s:s,s:{s:s}}", "name", route->flag,
                                              "in", "query", "schema", "type", "boolean"));
    return list;
}

static json_t *operation(const struct route *route)
{
    bool ok = true, is_text = strstr(route->pattern, "/log") != NULL;
    json_t *j = json_object();
    json_put(j, "operationId", json_string(route->name), &ok);
    json_put(j, "summary", json_string(route->summary), &ok);
    json_put(j, "parameters", parameters(route), &ok);
    if (route->has_body)
        json_put(j, "requestBody",
                 json_pack("{s:b,s:{s:{s:{s:s}}}}", "required", 1, "content",
                           "application/json", "schema", "type", "object"),
                 &ok);
    json_put(j, "responses",
             json_pack("{s:o,s:o}", "2XX",
                       response("Success", is_text ? "text/plain" : "application/json"),
                       "default", response("What is wrong", "application/problem+json")),
             &ok);
    if (ok)
        return j;
    json_decref(j);
    return NULL;
}

/* "get" of "GET" */
static void lower(const char *method, char out[8])
{
    size_t i = 0;
    for (; method[i] && i < 7; i++)
        out[i] = (char)tolower((unsigned char)method[i]);
    out[i] = '\0';
}

json_t *api_openapi(void)
{
    bool ok = true;
    json_t *paths = json_object();
    for (size_t i = 0; i < route_count; i++) {
        char method[8];
        lower(routes[i].method, method);
        if (!json_object_get(paths, routes[i].pattern))
            json_put(paths, routes[i].pattern, json_object(), &ok);
        json_put(json_object_get(paths, routes[i].pattern), method, operation(&routes[i]),
                 &ok);
    }
    json_t *j = json_object();
    json_put(j, "openapi", json_string("3.1.0"), &ok);
    json_put(j, "info",
             json_pack("{s:s,s:s}", "title", "Sluice", "version", SLUICE_VERSION), &ok);
    json_put(j, "paths", paths, &ok);
    if (ok)
        return j;
    json_decref(j);
    return NULL;
}
