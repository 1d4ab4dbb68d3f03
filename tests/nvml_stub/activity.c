/* The calls that tell what happened between two readings: samples of cards and processes, GPM counters. */
#include "dispatch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* More than any caller that frees its samples needs: one that does not is found out. */
enum { MAX_GPM_SAMPLES = 256 };

/* ---- samples: as the real call, it first tells how many there may be, without regard to the time asked for ---- */

EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long since_us,
                                         nvmlValueType_t *value_type, unsigned *count, nvmlSample_t *samples)
{
    ENTER_DEVICE(device);
    if (type != NVML_GPU_UTILIZATION_SAMPLES || !unit->has_samples)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    *value_type = unit->sample_type;
    unsigned room = *count, found = 0;
    for (int i = 0; i < scene.samples; i++) {
        const struct sample *sample = &scene.sample[i];
        if (&scene.unit[sample->unit] != unit || (samples && sample->info.timeStamp <= since_us))
            continue;
        if (samples && found < room)
            samples[found] = sample->info;
        found++;
    }
    *count = samples && found > room ? room : found;
    return leave(found ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND);
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                    unsigned *count, unsigned long long since_us)
{
    ENTER_DEVICE(device);
    if (!unit->has_process_util)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    unsigned room = *count, found = 0;
    for (int i = 0; i < scene.uses; i++) {
        const struct use *use = &scene.use[i];
        if (&scene.unit[use->unit] != unit || use->info.timeStamp <= since_us)
            continue;
        if (samples && found < room)
            samples[found] = use->info;
        found++;
    }
    *count = found;
    if (!found)
        return leave(NVML_ERROR_NOT_FOUND);
    return leave(found > room || !samples ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

/* ---- GPM: two snapshots of counters, and what happened between them ---- */

struct nvmlGpmSample_st { char uuid[96]; struct counters counters; };

static unsigned gpm_samples;

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    ENTER_DEVICE(device);
    if (support->version != NVML_GPM_SUPPORT_VERSION)
        return leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    support->isSupportedDevice = (unsigned)unit->has_gpm;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    ENTER(__func__);
    if (gpm_samples == MAX_GPM_SAMPLES || !(*sample = calloc(1, sizeof **sample)))
        return leave(NVML_ERROR_INSUFFICIENT_RESOURCES);
    gpm_samples++;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    ENTER(__func__);
    free(sample);
    gpm_samples--;
    return leave(NVML_SUCCESS);
}

static nvmlReturn_t take_sample(const struct unit *unit, nvmlGpmSample_t sample)
{
    if (!unit->has_counters)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    strcpy(sample->uuid, unit->uuid);
    sample->counters = unit->counters;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    ENTER_DEVICE(device);
    return take_sample(unit, sample);
}

EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned gpu_instance, nvmlGpmSample_t sample)
{
    ENTER_DEVICE(device);
    for (int i = 0; i < scene.units; i++)
        if (scene.unit[i].parent == (int)(unit - scene.unit) && scene.unit[i].gpu_instance == gpu_instance)
            return take_sample(&scene.unit[i], sample);
    return leave(NVML_ERROR_INVALID_ARGUMENT);
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    if (get->version != NVML_GPM_METRICS_GET_VERSION || !get->sample1 || !get->sample2)
        return NVML_ERROR_INVALID_ARGUMENT;
    /* The samples name the instance, so that an error of that instance is met here too. */
    ENTER_UNIT(by_uuid, get->sample2->uuid);
    const struct counters *before = &get->sample1->counters, *after = &get->sample2->counters;
    double time = after->time - before->time;
    for (unsigned i = 0; i < get->numMetrics; i++) {
        nvmlGpmMetric_t *metric = &get->metrics[i];
        double busy = metric->metricId == NVML_GPM_METRIC_SM_UTIL ? after->sm - before->sm
                                                                  : after->graphics - before->graphics;
        metric->nvmlReturn = time > 0 && !strcmp(get->sample1->uuid, unit->uuid) ? NVML_SUCCESS : NVML_ERROR_NO_DATA;
        metric->value = time > 0 ? 100 * busy / time : 0;
    }
    return leave(NVML_SUCCESS);
}
