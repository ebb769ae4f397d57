/* SPDX-License-Identifier: Apache-2.0
 *
 * The core's built-in bugs (WAYBILL_BUG), and where each must show: a simulation that does not
 * see them proves nothing.
 */
#ifndef WB_SIMULATION_BUGS_H
#define WB_SIMULATION_BUGS_H

typedef struct sim_bug {
    const char *name;
    const char *scenario; /* that must fail with it; NULL: one of the first seeds of `mode` must */
    int mode;
    /** One that shows it, and is tried first. Once the core has changed it may be another one, which
     *  is looked for among all; whoever finds it writes it here, since the search is dear. */
    unsigned seed;
} sim_bug;

/** Ends with one without name. */
extern const sim_bug sim_bugs[];

/** So many seeds of a mode, or of a scenario, may pass before a bug must have shown. */
#define SIM_SEEDS_FOR_A_BUG 2000

#endif
