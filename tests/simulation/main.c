/* SPDX-License-Identifier: Apache-2.0
 *
 * The real workers and housekeepers over a broker and a database in memory that fail, lie dead
 * and lose replies at every step a seed says; afterwards the world is audited. Usage:
 *     simulation [FIRST_SEED [COUNT]]
 *     simulation --scenario NAME [FIRST_SEED COUNT]
 *     simulation --list
 *     simulation --bugs
 * Each run is a process of its own, so that one that crashes or hangs is just another violation.
 */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <waybill/sys/plugin.h>

#include "core/base/log.h"
#include "tests/simulation/bugs.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/observer.h"
#include "tests/simulation/population.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenarios.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

#define SEEDS_EACH_MODE 400
#define MODES 4
#define CHILDREN_MAX 16
/* Seconds after which a run is taken to hang: of its own work, and of real time, of which a busy
   machine gives it little (the dearest works 14 s when instrumented). */
#define WORK_MAX 60
#define WATCHDOG 600
#define REPORTED_MAX 40

typedef struct {
    pid_t pid;
    uint64_t seed;
    const sim_scenario *scenario; /* or NULL */
    const char *bug;              /* built in, or NULL */
    char *verdict;
} child;

static child children[CHILDREN_MAX];
static const char *const modes[MODES] = { "none", "receive_only", "sends_atomic_with_receive",
                                          "transaction_scope" };

static int mode_of(uint64_t seed)
{
    return (int)(seed % MODES);
}

/* ---- a run ---- */

static void run_seed(uint64_t seed)
{
    sim_random_start(seed);
    sim_shape_draw(mode_of(seed));
    sim_shape_tell();
    sim_populate();
    sim_scheduler_limit(the_shape.steps_max);
    sim_scheduler_run(sim_drive, the_shape.switching);
}

static void run(uint64_t seed, const sim_scenario *scenario)
{
    sim_observer_attach(scenario || seed / MODES % 2 == 0);
    if (scenario)
        sim_scenario_run(scenario, seed);
    else
        run_seed(seed);
}

/* Only one of its threads runs at a time: on one core the baton goes from hand to hand faster. */
static void stay_on_one_core(const child *c)
{
    cpu_set_t all, one;
    int wanted = (int)(c - children), found = 0;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    wanted %= CPU_COUNT(&all);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && found++ == wanted)
            CPU_SET(i, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void start_child(child *c, int tells)
{
    memset(c->verdict, 0, SIM_VERDICT_SIZE);
    (void)fflush(stdout);
    c->pid = fork();
    if (c->pid != 0)
        return;
    (void)alarm(WATCHDOG);
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){ WORK_MAX, WORK_MAX + 1 });
    stay_on_one_core(c);
    (void)clearenv(); /* a run depends on nothing in it, and is asked at each step whether there is a bug in it */
    if (c->bug)
        (void)setenv("WAYBILL_BUG", c->bug, 1);
    wb_log_set_level(tells ? WB_LOG_DEBUG : -1);
    sim_verdict_start(c->verdict, tells);
    run(c->seed, c->scenario);
    (void)fflush(stdout);
    _exit(0);
}

static int is_watchdog(int signal)
{
    return signal == SIGALRM || signal == SIGXCPU;
}

/* @return whether it is without violation; else its verdict says what. */
static int conclude(const child *c, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 1;
    if (WIFSIGNALED(status))
        (void)snprintf(c->verdict, SIM_VERDICT_SIZE, "%s (signal %d)",
                       is_watchdog(WTERMSIG(status)) ? "hangs" : "crashes", WTERMSIG(status));
    else if (!c->verdict[0])
        (void)snprintf(c->verdict, SIM_VERDICT_SIZE, "ends with %d", WEXITSTATUS(status));
    return 0;
}

static child *await_child(int *ret_status)
{
    pid_t pid = wait(ret_status);
    for (int i = 0; i < CHILDREN_MAX; i++)
        if (children[i].pid == pid)
            return &children[i];
    abort();
}

/* ---- seeds ---- */

typedef struct {
    uint64_t next, end;
    unsigned running, failures[MODES], seeds[MODES];
    int tells;
} campaign;

static void report(const child *c)
{
    printf("# seed %llu (%s): %s; replay: simulation %llu 1\n", (unsigned long long)c->seed,
           modes[mode_of(c->seed)], c->verdict, (unsigned long long)c->seed);
    (void)fflush(stdout);
}

static void take_result(campaign *all)
{
    int status;
    child *c = await_child(&status);
    int is_good = conclude(c, status), mode = mode_of(c->seed);
    c->pid = 0;
    all->running--;
    all->seeds[mode]++;
    if (!is_good && all->failures[mode]++ < REPORTED_MAX)
        report(c);
}

static child *find_slot(void)
{
    int i = 0;
    while (children[i].pid)
        i++;
    return &children[i];
}

static void run_seeds(campaign *all)
{
    cpu_set_t cores;
    unsigned at_once = 1;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        at_once = CPU_COUNT(&cores) > CHILDREN_MAX ? CHILDREN_MAX : (unsigned)CPU_COUNT(&cores);
    while (all->next < all->end || all->running) {
        if (all->next == all->end || all->running == at_once) {
            take_result(all);
            continue;
        }
        child *c = find_slot();
        c->seed = all->next++;
        c->scenario = NULL;
        start_child(c, all->tells);
        all->running++;
    }
}

/* ---- scenarios ---- */

/* @return whether it is without violation. */
static int run_one(uint64_t seed, const sim_scenario *scenario, const char *bug, int tells)
{
    int status;
    child *c = &children[0];
    c->seed = seed;
    c->scenario = scenario;
    c->bug = bug;
    start_child(c, tells);
    (void)await_child(&status);
    c->pid = 0;
    c->bug = NULL;
    return conclude(c, status);
}

/* @return whether it is without violation with each of the seeds, the others are not tried. */
static int run_scenario(const sim_scenario *scenario, uint64_t first, uint64_t count, int tells)
{
    const child *c = &children[0];
    for (uint64_t seed = first; seed < first + count; seed++)
        if (!run_one(seed, scenario, NULL, tells)) {
            printf("# %s: %s; replay: simulation --scenario %s %llu 1\n", scenario->name, c->verdict,
                   scenario->name, (unsigned long long)seed);
            return 0;
        }
    return 1;
}

/* Whoever has run all of them elsewhere asks for fewer, of each mode and each scenario. */
static uint64_t seeds_each_mode(void)
{
    const char *wanted = getenv("WB_SIMULATION_SEEDS");
    const uint64_t count = wanted ? strtoull(wanted, NULL, 10) : 0;
    return count ? count : SEEDS_EACH_MODE;
}

static uint64_t seeds_of(const sim_scenario *scenario)
{
    const uint64_t wanted = sim_scenario_seeds(scenario) * seeds_each_mode() / SEEDS_EACH_MODE;
    return wanted ? wanted : 1;
}

static int run_scenarios(unsigned *number)
{
    int failures = 0;
    const sim_scenario *scenario;
    for (size_t i = 0; (scenario = sim_scenario_at(i)); i++) {
        int is_good = run_scenario(scenario, 1, seeds_of(scenario), 0);
        failures += !is_good;
        printf("%s %u - %s: %s\n", is_good ? "ok" : "not ok", ++*number, scenario->name, scenario->what);
    }
    return failures;
}

static const sim_scenario *find_scenario(const char *name)
{
    const sim_scenario *scenario = NULL;
    for (size_t i = 0; (scenario = sim_scenario_at(i)); i++)
        if (strcmp(scenario->name, name) == 0)
            return scenario;
    return NULL;
}

static int run_one_scenario(const char *name, uint64_t first, uint64_t count)
{
    const sim_scenario *scenario = find_scenario(name);
    if (!scenario) {
        (void)fprintf(stderr, "simulation: no scenario \"%s\"\n", name);
        return 64;
    }
    int is_good = run_scenario(scenario, first, count, count == 1);
    printf("1..1\n%s 1 - %s: %s\n", is_good ? "ok" : "not ok", name, scenario->what);
    return !is_good;
}

static int list_scenarios(void)
{
    const sim_scenario *scenario;
    for (size_t i = 0; (scenario = sim_scenario_at(i)); i++)
        printf("%-28s %s\n", scenario->name, scenario->what);
    return 0;
}

/* ---- built-in bugs ---- */

/* @return a seed that shows it, or 0. */
static uint64_t find_seed(const sim_bug *bug)
{
    const sim_scenario *scenario = bug->scenario ? find_scenario(bug->scenario) : NULL;
    if (!run_one(bug->seed, scenario, bug->name, 0))
        return bug->seed;
    for (uint64_t i = 1; i <= SIM_SEEDS_FOR_A_BUG; i++) {
        const uint64_t seed = scenario ? i : i * MODES + (uint64_t)bug->mode;
        if (!run_one(seed, scenario, bug->name, 0))
            return seed;
    }
    return 0;
}

static int run_bugs(unsigned *number)
{
    int failures = 0;
    for (const sim_bug *bug = sim_bugs; bug->name; bug++) {
        const uint64_t seed = find_seed(bug);
        failures += !seed;
        if (seed && seed != bug->seed)
            printf("# %s no longer shows with seed %u but with %llu: bugs.c wants to know\n", bug->name, bug->seed,
                   (unsigned long long)seed);
        printf("%s %u - the built-in bug %s shows in %s%s%s\n", seed ? "ok" : "not ok", ++*number, bug->name,
               bug->scenario ? bug->scenario : "a seed", seed ? ": " : "", seed ? children[0].verdict : "");
    }
    return failures;
}

/* ---- main ---- */

static void make_slots(void)
{
    char *slots = mmap(NULL, CHILDREN_MAX * SIM_VERDICT_SIZE, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        abort();
    for (size_t i = 0; i < CHILDREN_MAX; i++)
        children[i].verdict = slots + i * SIM_VERDICT_SIZE;
}

static int report_seeds(const campaign *all, unsigned *number)
{
    unsigned failures = 0;
    for (int i = 0; i < MODES; i++) {
        failures += all->failures[i];
        if (all->seeds[i])
            printf("%s %u - %s: %u seeds, %u with violations\n", all->failures[i] ? "not ok" : "ok", ++*number,
                   modes[i], all->seeds[i], all->failures[i]);
    }
    return failures != 0;
}

int main(int argc, char **argv)
{
    unsigned number = 0;
    int failures = 0;
    make_slots();
    if (argc > 2 && strcmp(argv[1], "--scenario") == 0)
        return run_one_scenario(argv[2], argc > 3 ? strtoull(argv[3], NULL, 10) : 1,
                                argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
    if (argc > 1 && strcmp(argv[1], "--list") == 0)
        return list_scenarios();
    if (argc > 1 && strcmp(argv[1], "--bugs") == 0) {
        failures = run_bugs(&number);
        printf("1..%u\n", number);
        return failures != 0;
    }
    campaign all = { .next = argc > 1 ? strtoull(argv[1], NULL, 10) : 1 };
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : seeds_each_mode() * MODES;
    all.end = all.next + count;
    all.tells = count == 1;
    if (argc == 1)
        failures = run_scenarios(&number) + run_bugs(&number);
    run_seeds(&all);
    failures += report_seeds(&all, &number);
    printf("1..%u\n", number);
    return failures != 0;
}
