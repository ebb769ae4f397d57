/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/strand.h"

#include <stddef.h>
#include <stdlib.h>

/* The address sanitizer forgets a stack's shadow, an eighth of it, with each change: it writes over one of up to 64 KiB, a
 * larger one it gives back to the system, which takes fifty times as long. */
#define STACK_SIZE ((size_t)256 << 10)

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MIND_ADDRESSES
#elif __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define MIND_THREADS
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define MIND_ADDRESSES
#elif defined(__SANITIZE_THREAD__)
#define MIND_THREADS
#endif

#ifdef MIND_THREADS

#include <pthread.h>
#include <semaphore.h>

struct sim_strand {
    sem_t baton;
    void (*function)(void *argument);
    void *argument;
};

int __real_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument);

static void await_baton(sim_strand *me)
{
    while (sem_wait(&me->baton) != 0)
        ;
}

static void *thread_main(void *argument)
{
    sim_strand *me = argument;
    await_baton(me);
    me->function(me->argument);
    abort();
}

static sim_strand *make(void)
{
    sim_strand *strand = calloc(1, sizeof *strand);
    if (!strand || sem_init(&strand->baton, 0, 0) != 0)
        abort();
    return strand;
}

sim_strand *sim_strand_new(void (*function)(void *argument), void *argument)
{
    pthread_t id;
    pthread_attr_t attributes;
    sim_strand *strand = make();
    strand->function = function;
    strand->argument = argument;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (__real_pthread_create(&id, &attributes, thread_main, strand) != 0)
        abort();
    pthread_attr_destroy(&attributes);
    return strand;
}

sim_strand *sim_strand_main(void)
{
    return make();
}

void sim_strand_switch(sim_strand *from, sim_strand *to)
{
    (void)sem_post(&to->baton);
    await_baton(from);
}

void sim_strand_leave(sim_strand *from, sim_strand *to)
{
    (void)from;
    (void)sem_post(&to->baton);
    pthread_exit(NULL);
}

#else

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct sim_strand {
    ucontext_t context;
    void (*function)(void *argument);
    void *argument;
    void *stack;
    size_t stack_size;
    void *shadow; /* what the address sanitizer keeps for it while it does not run */
    int error;
    sim_strand *next; /* of those whose stacks are free */
    char own[];       /* the program's thread-local variables while it does not run */
};

/* Where these are, and what a thread begins with. */
static struct {
    char *at;
    size_t size;
    char *initial;
} locals;
static sim_strand *ended, *left, *running;

/* The first is the program itself. */
static int find_locals(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    (void)argument;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            locals.at = info->dlpi_tls_data;
            locals.size = info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static void keep_initial(void)
{
    (void)dl_iterate_phdr(find_locals, NULL);
    locals.initial = malloc(locals.size + 1);
    if (!locals.initial)
        abort();
    memcpy(locals.initial, locals.at, locals.size);
}

static sim_strand *make(void)
{
    sim_strand *strand = malloc(sizeof *strand + locals.size);
    if (!strand)
        abort();
    memset(strand, 0, sizeof *strand);
    return strand;
}

/* What lies below the stack nobody may touch. */
static void *make_stack(void)
{
    const size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    char *stack = mmap(NULL, STACK_SIZE + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, guard, PROT_NONE) != 0)
        abort();
    return stack + guard;
}

/* The address sanitizer wants to hear of a change of stacks before it and behind it. */
#ifdef MIND_ADDRESSES
#include <sanitizer/common_interface_defs.h>
static void tell_before(void **shadow, const sim_strand *to)
{
    __sanitizer_start_switch_fiber(shadow, to->stack, to->stack_size);
}
/* The first to be left is main(), whose stack nobody has named before. */
static void tell_behind(void *shadow)
{
    const void *stack;
    size_t size;
    __sanitizer_finish_switch_fiber(shadow, &stack, &size);
    if (!left->stack) {
        left->stack = (void *)(uintptr_t)stack;
        left->stack_size = size;
    }
}
#else
static void tell_before(void **shadow, const sim_strand *to)
{
    (void)shadow;
    (void)to;
}
static void tell_behind(void *shadow)
{
    (void)shadow;
}
#endif

static void begin(void)
{
    tell_behind(NULL);
    running->function(running->argument);
    abort();
}

sim_strand *sim_strand_main(void)
{
    keep_initial();
    return make();
}

sim_strand *sim_strand_new(void (*function)(void *argument), void *argument)
{
    sim_strand *strand = ended;
    if (strand) {
        ended = strand->next;
    } else {
        strand = make();
        strand->stack = make_stack();
        strand->stack_size = STACK_SIZE;
    }
    strand->function = function;
    strand->argument = argument;
    strand->error = 0;
    memcpy(strand->own, locals.initial, locals.size);
    (void)getcontext(&strand->context);
    strand->context.uc_stack.ss_sp = strand->stack;
    strand->context.uc_stack.ss_size = STACK_SIZE;
    strand->context.uc_link = NULL;
    makecontext(&strand->context, begin, 0);
    return strand;
}

static void change(sim_strand *from, sim_strand *to, void **shadow)
{
    from->error = errno;
    memcpy(from->own, locals.at, locals.size);
    memcpy(locals.at, to->own, locals.size);
    errno = to->error;
    left = from;
    running = to;
    tell_before(shadow, to);
    (void)swapcontext(&from->context, &to->context);
    tell_behind(from->shadow);
}

void sim_strand_switch(sim_strand *from, sim_strand *to)
{
    change(from, to, &from->shadow);
}

/* Its stack is another one's when that is made, which is not before this one is left. */
void sim_strand_leave(sim_strand *from, sim_strand *to)
{
    from->next = ended;
    ended = from;
    change(from, to, NULL);
    abort();
}

#endif
