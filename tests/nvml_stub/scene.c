/* The scene file: what it says is in scene.h. */
#define _GNU_SOURCE
#include "scene.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FALLBACK_SCENE "/etc/gua-nvml-scene"

struct version { unsigned long long inode, size; long long mtime_s, mtime_ns; };

struct scene scene;
static struct version last_read;
static int ever_read;

const struct nvml_error nvml_errors[] = {
    {"SUCCESS", NVML_SUCCESS, "Success"},
    {"UNINITIALIZED", NVML_ERROR_UNINITIALIZED, "Uninitialized"},
    {"INVALID_ARGUMENT", NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
    {"NOT_SUPPORTED", NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
    {"NO_PERMISSION", NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
    {"NOT_FOUND", NVML_ERROR_NOT_FOUND, "Not Found"},
    {"INSUFFICIENT_SIZE", NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
    {"INSUFFICIENT_POWER", NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power"},
    {"DRIVER_NOT_LOADED", NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
    {"TIMEOUT", NVML_ERROR_TIMEOUT, "Timeout"},
    {"IRQ_ISSUE", NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"},
    {"LIBRARY_NOT_FOUND", NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"},
    {"FUNCTION_NOT_FOUND", NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
    {"CORRUPTED_INFOROM", NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM"},
    {"GPU_IS_LOST", NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
    {"RESET_REQUIRED", NVML_ERROR_RESET_REQUIRED, "GPU requires restart"},
    {"OPERATING_SYSTEM", NVML_ERROR_OPERATING_SYSTEM, "The operating system has blocked the request."},
    {"LIB_RM_VERSION_MISMATCH", NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
    {"IN_USE", NVML_ERROR_IN_USE, "In use by another client"},
    {"MEMORY", NVML_ERROR_MEMORY, "Insufficient Memory"},
    {"NO_DATA", NVML_ERROR_NO_DATA, "No data"},
    {"INSUFFICIENT_RESOURCES", NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient Resources"},
    {"ARGUMENT_VERSION_MISMATCH", NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
    {"DEPRECATED", NVML_ERROR_DEPRECATED, "Deprecated"},
    {"NOT_READY", NVML_ERROR_NOT_READY, "Not ready"},
    {"GPU_NOT_FOUND", NVML_ERROR_GPU_NOT_FOUND, "No GPUs were found"},
    {"UNKNOWN", NVML_ERROR_UNKNOWN, "Unknown Error"},
    {NULL, NVML_ERROR_UNKNOWN, "Unknown Error"},
};

static void complain(const char *problem, const char *text)
{
    fprintf(stderr, "nvml stub: scene: %s: %s\n", problem, text);
    scene.broken = 1;
}

static nvmlReturn_t error_code(const char *name)
{
    for (const struct nvml_error *error = nvml_errors; error->name; error++)
        if (!strcmp(error->name, name))
            return error->code;
    complain("no such NVML error", name);
    return NVML_ERROR_UNKNOWN;
}

/* The next blank-separated word of *text, ended with NUL; "" when there is none. */
static char *word(char **text)
{
    char *begin = *text + strspn(*text, " \t");
    char *end = begin + strcspn(begin, " \t");
    *text = *end ? end + 1 : end;
    *end = '\0';
    return begin;
}

static unsigned long long number(char **text)
{
    char *digits = word(text), *end;
    unsigned long long value = strtoull(digits, &end, 10);
    if (!isdigit((unsigned char)*digits) || *end)
        complain("not a number", digits);
    return value;
}

static double real(char **text)
{
    char *digits = word(text), *end;
    double value = strtod(digits, &end);
    if (!*digits || *end)
        complain("not a number", digits);
    return value;
}

static struct reading reading(char **text)
{
    return (struct reading){1, number(text)};
}

static void copy(char *target, size_t size, const char *text)
{
    if (snprintf(target, size, "%s", text + strspn(text, " \t")) >= (int)size)
        complain("too long", text);
}

static struct unit *add_unit(int parent, const char *uuid)
{
    struct unit *unit = &scene.unit[scene.units];
    if (scene.units == MAX_UNITS - 1) {
        complain("too many cards", uuid);
        return unit;
    }
    *unit = (struct unit){.parent = parent, .gpu_instance = NOBODY, .compute_instance = NOBODY};
    copy(unit->uuid, sizeof unit->uuid, uuid);
    scene.units++;
    return unit;
}

static void add_process(int unit, char *text)
{
    struct process *process = &scene.process[scene.processes];
    if (scene.processes == MAX_PROCESSES - 1)
        complain("too many processes", text);
    else
        scene.processes++;
    const char *kind = word(&text);
    process->unit = unit;
    process->kind = !strcmp(kind, "mps") ? MPS : !strcmp(kind, "graphics") ? GRAPHICS : COMPUTE;
    process->info.pid = (unsigned)number(&text);
    text += strspn(text, " \t");
    process->info.usedGpuMemory = !strncmp(text, "na", 2) ? (word(&text), NOT_AVAILABLE) : number(&text);
    process->info.gpuInstanceId = *text ? (unsigned)number(&text) : NOBODY;
    process->info.computeInstanceId = *text ? (unsigned)number(&text) : NOBODY;
}

static void add_sample(struct unit *unit, char *text)
{
    struct sample *sample = &scene.sample[scene.samples];
    if (scene.samples == MAX_SAMPLES - 1)
        complain("too many samples", text);
    else
        scene.samples++;
    memset(sample, 0, sizeof *sample);
    sample->unit = (int)(unit - scene.unit);
    sample->info.timeStamp = number(&text);
    double value = real(&text);
    nvmlValue_t *target = &sample->info.sampleValue;
    switch (unit->sample_type) {
    case NVML_VALUE_TYPE_DOUBLE: target->dVal = value; break;
    case NVML_VALUE_TYPE_UNSIGNED_INT: target->uiVal = (unsigned)value; break;
    case NVML_VALUE_TYPE_UNSIGNED_LONG: target->ulVal = (unsigned long)value; break;
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG: target->sllVal = (long long)value; break;
    case NVML_VALUE_TYPE_SIGNED_INT: target->siVal = (int)value; break;
    case NVML_VALUE_TYPE_UNSIGNED_SHORT: target->usVal = (unsigned short)value; break;
    default: target->ullVal = (unsigned long long)value;
    }
}

static void add_use(int unit, char *text)
{
    struct use *use = &scene.use[scene.uses];
    if (scene.uses == MAX_SAMPLES - 1)
        complain("too many samples of processes", text);
    else
        scene.uses++;
    *use = (struct use){.unit = unit};
    use->info.pid = (unsigned)number(&text);
    use->info.timeStamp = number(&text);
    use->info.smUtil = (unsigned)number(&text);
}

static void add_rule(int unit, int is_delay, char *text)
{
    struct rule *rule = &scene.rule[scene.rules];
    if (scene.rules == MAX_RULES - 1)
        complain("too many rules", text);
    else
        scene.rules++;
    *rule = (struct rule){.unit = unit};
    copy(rule->call, sizeof rule->call, word(&text));
    if (is_delay)
        rule->delay_ms = (long)number(&text);
    else
        rule->error = error_code(word(&text));
    for (const char *option = word(&text); *option; option = word(&text)) {
        if (!strcmp(option, "masked")) {
            rule->masked = 1;
        } else if (!strcmp(option, "first") || !strcmp(option, "from")) {
            rule->window = option[1] == 'i' ? FIRST : FROM;
            rule->limit = number(&text);
        } else {
            complain("not an option of a rule", option);
        }
    }
}

/* One statement on what happened between readings. Returns 0 when the key is none of these. */
static int parse_activity_line(struct unit *unit, const char *key, char *text)
{
    if (!strcmp(key, "samples")) {
        unit->has_samples = 1;
        unit->sample_type = (nvmlValueType_t)number(&text);
    } else if (!strcmp(key, "sample")) add_sample(unit, text);
    else if (!strcmp(key, "process-util")) unit->has_process_util = 1;
    else if (!strcmp(key, "use")) add_use((int)(unit - scene.unit), text);
    else if (!strcmp(key, "gpm")) unit->has_gpm = 1;
    else if (!strcmp(key, "counters")) {
        unit->has_counters = 1;
        unit->counters.time = real(&text);
        unit->counters.graphics = real(&text);
        unit->counters.sm = real(&text);
    } else if (!strcmp(key, "parent-lists")) unit->parent_lists = 1;
    else return 0;
    return 1;
}

/* One statement that belongs to a card or instance. Returns 0 when the key is none of these. */
static int parse_unit_line(struct unit *unit, const char *key, char *text)
{
    if (!strcmp(key, "name")) copy(unit->name, sizeof unit->name, text);
    else if (!strcmp(key, "pci")) copy(unit->pci, sizeof unit->pci, text);
    else if (!strcmp(key, "memory")) {
        unit->total = reading(&text);
        unit->reserved = reading(&text);
        unit->used = reading(&text);
    } else if (!strcmp(key, "memory1")) {
        unit->total1 = reading(&text);
        unit->used1 = reading(&text);
    } else if (!strcmp(key, "util")) unit->util = reading(&text);
    else if (!strcmp(key, "temperature")) unit->temperature = reading(&text);
    else if (!strcmp(key, "power")) unit->power = reading(&text);
    else if (!strcmp(key, "energy")) unit->energy = reading(&text);
    else if (!strcmp(key, "process")) add_process((int)(unit - scene.unit), text);
    else if (!strcmp(key, "mig")) {
        unit->mig = 1;
        unit->mig_max = (unsigned)number(&text);
    } else if (!strcmp(key, "ids")) {
        unit->gpu_instance = (unsigned)number(&text);
        unit->compute_instance = (unsigned)number(&text);
    } else if (!strcmp(key, "slices")) {
        unit->gpu_slices = (unsigned)number(&text);
        unit->compute_slices = (unsigned)number(&text);
    } else return parse_activity_line(unit, key, text);
    return 1;
}

static void parse_line(char *text, int *card, struct unit **unit)
{
    const char *key = word(&text);
    int owner = *unit ? (int)(*unit - scene.unit) : EVERYWHERE;
    if (!*key || *key == '#') return;
    if (!strcmp(key, "driver")) copy(scene.driver, sizeof scene.driver, text);
    else if (!strcmp(key, "nvml")) copy(scene.nvml, sizeof scene.nvml, text);
    else if (!strcmp(key, "generation")) scene.generation = number(&text);
    else if (!strcmp(key, "process-info-size")) scene.process_info_size = number(&text);
    else if (!strcmp(key, "error") || !strcmp(key, "delay")) add_rule(owner, *key == 'd', text);
    else if (!strcmp(key, "card")) {
        *unit = add_unit(EVERYWHERE, word(&text));
        *card = (int)(*unit - scene.unit);
    } else if (!strcmp(key, "instance") && *unit) {
        unsigned slot = (unsigned)number(&text);
        *unit = add_unit(*card, word(&text));
        (*unit)->slot = slot;
    } else if (!*unit || !parse_unit_line(*unit, key, text)) complain("not understood", key);
}

static const char *scene_path(void)
{
    const char *path = getenv("GUA_NVML_SCENE");
    return path && *path ? path : FALLBACK_SCENE;
}

/* What tells one version of the file from another; all zero: no file. statx, because stat itself is bound to
 * glibc 2.33 when built there, and the library must load on Debian 11. */
static void look_at_file(struct version *version)
{
    struct statx now;
    memset(version, 0, sizeof *version);
    if (statx(AT_FDCWD, scene_path(), 0, STATX_BASIC_STATS, &now))
        return;
    version->inode = now.stx_ino;
    version->size = now.stx_size;
    version->mtime_s = now.stx_mtime.tv_sec;
    version->mtime_ns = now.stx_mtime.tv_nsec;
}

int scene_changed(void)
{
    struct version now;
    look_at_file(&now);
    return !ever_read || memcmp(&now, &last_read, sizeof now) != 0;
}

static void read_lines(FILE *file)
{
    char line[512];
    int card = EVERYWHERE;
    struct unit *unit = NULL;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        parse_line(line, &card, &unit);
    }
}

void scene_refresh(void)
{
    if (!scene_changed())
        return;
    memset(&scene, 0, sizeof scene);
    strcpy(scene.driver, "570.86.15");
    strcpy(scene.nvml, "12.570.86.15");
    scene.process_info_size = sizeof(nvmlProcessInfo_t);
    /* Looked at before it is read: a file replaced in between is then read again at the next call. */
    look_at_file(&last_read);
    ever_read = 1;
    FILE *file = fopen(scene_path(), "re");
    if (!file)
        return;
    read_lines(file);
    fclose(file);
}
