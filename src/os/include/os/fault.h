/*
 * Fault points: named places where a crash test may kill this process or make a
 * call fail: SLUICE_FAULT="journal.before-sync:kill", "…:fail=ENOSPC", "…:kill@3"
 * (the third time); several with commas.  Unset, a point costs one load and a
 * branch.
 */
#ifndef OS_FAULT_H
#define OS_FAULT_H

/* 0, or the errno to fail with; does not return where the point says kill. */
int fault_point(const char *name);

#endif
