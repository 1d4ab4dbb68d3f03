/* What every call does first: find its card, and obey the rules of the scene. */
#define _GNU_SOURCE
#include "dispatch.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { SLICE_MS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long initialised, init_generation;

/* A handle is a number, never dereferenced: unit index + 1. It goes stale with the scene, as real ones do. */
static struct unit *unit_of(nvmlDevice_t device)
{
    uintptr_t handle = (uintptr_t)device;
    return handle >= 1 && handle <= (uintptr_t)scene.units ? &scene.unit[handle - 1] : NULL;
}

nvmlDevice_t handle_of(const struct unit *unit)
{
    return (nvmlDevice_t)(uintptr_t)(unit - scene.unit + 1);
}

/* The index-th card (parent EVERYWHERE), or NULL. */
struct unit *card_at(unsigned index)
{
    for (int i = 0; i < scene.units; i++)
        if (scene.unit[i].parent == EVERYWHERE && index-- == 0)
            return &scene.unit[i];
    return NULL;
}

unsigned index_of(const struct unit *unit)
{
    unsigned index = 0;
    if (unit->parent != EVERYWHERE)
        unit = &scene.unit[unit->parent];
    for (const struct unit *other = scene.unit; other < unit; other++)
        index += other->parent == EVERYWHERE;
    return index;
}

static int call_matches(const char *rule, const char *call, int on_card)
{
    size_t length = strlen(rule);
    const char *unversioned = strlen(rule) > 3 && !strcmp(rule + length - 3, "_v1") ? rule : NULL;
    if (!strcmp(rule, "*"))
        return on_card;
    if (unversioned)
        return strlen(call) == length - 3 && !strncmp(rule, call, length - 3);
    return !strcmp(rule, call) || (!strncmp(rule, call, length) && call[length] == '_' && call[length + 1] == 'v');
}

static int rule_applies(struct rule *rule, const char *call, const struct unit *unit)
{
    int owner = unit ? (int)(unit - scene.unit) : EVERYWHERE;
    if ((rule->unit != EVERYWHERE && rule->unit != owner) || !call_matches(rule->call, call, unit != NULL))
        return 0;
    rule->seen++;
    if (rule->window == FIRST)
        return rule->seen <= rule->limit;
    return rule->window == ALWAYS || rule->seen >= rule->limit;
}

/* Sleep with the lock released; ends early when the scene is replaced, so that no test leaves a sleeper behind. */
static void sleep_ms(long delay_ms, int masked)
{
    sigset_t all, before;
    sigfillset(&all);
    if (masked)
        sigprocmask(SIG_BLOCK, &all, &before);
    pthread_mutex_unlock(&lock);
    int changed = 0;
    for (long slept = 0; slept < delay_ms && !changed; slept += SLICE_MS) {
        long slice = delay_ms - slept < SLICE_MS ? delay_ms - slept : SLICE_MS;
        nanosleep(&(struct timespec){0, slice * 1000000}, NULL);
        pthread_mutex_lock(&lock);
        changed = scene_changed();
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    if (masked)
        sigprocmask(SIG_SETMASK, &before, NULL);
}

static nvmlReturn_t obey_rules(const char *call, struct unit *unit)
{
    nvmlReturn_t result = NVML_SUCCESS;
    long delay_ms = 0;
    int masked = 0;
    for (int i = 0; i < scene.rules; i++) {
        struct rule *rule = &scene.rule[i];
        if (!rule_applies(rule, call, unit))
            continue;
        if (rule->delay_ms) {
            delay_ms += rule->delay_ms;
            masked |= rule->masked;
        } else if (result == NVML_SUCCESS) {
            result = rule->error;
        }
    }
    if (delay_ms)
        sleep_ms(delay_ms, masked);
    return result;
}

nvmlReturn_t leave(nvmlReturn_t result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t enter_unit(const char *call, struct unit *(*find)(const void *), const void *key, struct unit **unit)
{
    struct unit *found = NULL;
    pthread_mutex_lock(&lock);
    scene_refresh();
    if (scene.broken)
        return leave(NVML_ERROR_UNKNOWN);
    if (!initialised || init_generation != scene.generation)
        return leave(NVML_ERROR_UNINITIALIZED);
    if (find && !(*unit = found = find(key)))
        return leave(NVML_ERROR_INVALID_ARGUMENT);
    nvmlReturn_t result = obey_rules(call, found);
    return result == NVML_SUCCESS ? result : leave(result);
}

nvmlReturn_t enter(const char *call)
{
    return enter_unit(call, NULL, NULL, NULL);
}

struct unit *by_handle(const void *key) { return unit_of((nvmlDevice_t)(uintptr_t)key); }
struct unit *by_index(const void *key) { return card_at(*(const unsigned *)key); }

struct unit *by_uuid(const void *key)
{
    for (int i = 0; i < scene.units; i++)
        if (!strcmp(scene.unit[i].uuid, key))
            return &scene.unit[i];
    return NULL;
}

struct unit *by_pci(const void *key)
{
    for (int i = 0; i < scene.units; i++)
        if (scene.unit[i].parent == EVERYWHERE && !strcasecmp(scene.unit[i].pci, key))
            return &scene.unit[i];
    return NULL;
}

nvmlReturn_t initialise(void)
{
    pthread_mutex_lock(&lock);
    scene_refresh();
    nvmlReturn_t result = scene.broken ? NVML_ERROR_UNKNOWN : obey_rules("nvmlInit", NULL);
    if (result == NVML_SUCCESS && !initialised++)
        init_generation = scene.generation;
    return leave(result);
}

nvmlReturn_t shut_down(void)
{
    pthread_mutex_lock(&lock);
    scene_refresh();
    if (!initialised)
        return leave(NVML_ERROR_UNINITIALIZED);
    initialised--;
    return leave(obey_rules("nvmlShutdown", NULL));
}
