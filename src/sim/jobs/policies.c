/* The table of policies for jobs. */
#include <string.h>

#include "core/macros.h"
#include "policy.h"

static const struct {
    const char *name, *about;
    const struct job_policy *rules[JOBSIM_RULES];
    bool has_log;
} policies[] = {
    { "fifo",
      "first come, first served: who does not fit holds up all behind",
      { &job_policy_fifo, &job_policy_fifo } },
    { "sjf",
      "the shortest job first, known beforehand; nobody is stopped",
      { &job_policy_sjf, &job_policy_sjf } },
    { "srtf",
      "the shortest remaining time first, known beforehand; stops longer ones",
      { &job_policy_srtf_helios, &job_policy_srtf_muri } },
    { "srsf",
      "the least remaining time x devices first, known beforehand; stops larger ones",
      { &job_policy_srsf_helios, &job_policy_srsf_muri } },
    { "tiresias",
      "the least attained service first, in steps; run times unknown",
      { &job_policy_tiresias_lucid, &job_policy_tiresias_muri } },
    { "qssf",
      "the least predicted time x devices first, from what its owner ran before",
      { &job_policy_qssf, &job_policy_qssf } },
    { "sluice",
      "our own: told where a job says how long it takes (muri), else blind",
      { &job_policy_sluice, &job_policy_sluice },
      true },
    { "sluice-blind",
      "our own, run times unknown: the least attained service first, in powers of two",
      { &job_policy_sluice_blind, &job_policy_sluice_blind },
      true },
    { "sluice-history",
      "our own, run times predicted from what its owner ran before",
      { &job_policy_sluice_history, &job_policy_sluice_history },
      true },
    { "sluice-told",
      "our own, run times known beforehand",
      { &job_policy_sluice_told, &job_policy_sluice_told },
      true },
    { "sluice-shared",
      "our own, told, and who waits may take turns with who runs (muri)",
      { [JOBSIM_MURI] = &job_policy_sluice_shared },
      true },
};

const char *jobsim_policy_name(unsigned i)
{
    return i < ARRAY_LEN(policies) ? policies[i].name : NULL;
}

const char *jobsim_policy_about(unsigned i)
{
    return i < ARRAY_LEN(policies) ? policies[i].about : NULL;
}

bool jobsim_policy_under(unsigned i, enum jobsim_rules rules)
{
    return policies[i].rules[rules];
}

bool jobsim_policy_has_log(unsigned i)
{
    return policies[i].has_log;
}

const struct job_policy *job_policy_find(const char *name, enum jobsim_rules rules,
                                         struct sl_err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        if (!strcmp(name, policies[i].name)) {
            if (!policies[i].rules[rules])
                sl_fail(err, SL_INVALID, "'%s' needs the stages of a muri trace", name);
            return policies[i].rules[rules];
        }
    sl_fail(err, SL_INVALID, "'%.40s' is no policy for jobs", name);
    return NULL;
}
