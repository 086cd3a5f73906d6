/*
 * An agent that is not there: the client's calls are answered from the recorded
 * answers in a folder, "METHOD-v1-leases-b.json".
 */
#ifndef FAKE_API_H
#define FAKE_API_H

#include <stdbool.h>

/* NULL: nobody is running. */
void fake_api_serve(const char *dir);
/* The body of the last call, as compact JSON; "" for none. */
const char *fake_api_last_body(void);
bool fake_api_was_started(void);

#endif
