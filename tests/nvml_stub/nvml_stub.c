/* The calls of libnvidia-ml.so.1, answered from the scene (scene.h says what that is). */
#include "dispatch.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static nvmlReturn_t give_text(char *target, unsigned size, const char *text)
{
    if (!*text)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    if (strlen(text) + 1 > size)
        return leave(NVML_ERROR_INSUFFICIENT_SIZE);
    strcpy(target, text);
    return leave(NVML_SUCCESS);
}

static nvmlReturn_t give_number(unsigned *target, struct reading value)
{
    if (!value.known)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    *target = (unsigned)value.value;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlInit(void) { return initialise(); }
EXPORT nvmlReturn_t nvmlInit_v2(void) { return initialise(); }
EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) { (void)flags; return initialise(); }

EXPORT nvmlReturn_t nvmlShutdown(void) { return shut_down(); }

EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    const struct nvml_error *error = nvml_errors;
    while (error->name && error->code != result)
        error++;
    return error->text;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    ENTER(__func__);
    return give_text(version, length, scene.driver);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    ENTER(__func__);
    return give_text(version, length, scene.nvml);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    ENTER(__func__);
    for (*count = 0; card_at(*count);)
        ++*count;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    ENTER_UNIT(by_index, &index);
    *device = handle_of(unit);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    ENTER_UNIT(by_uuid, uuid);
    *device = handle_of(unit);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvmlDevice_t *device)
{
    ENTER_UNIT(by_pci, pci);
    *device = handle_of(unit);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    ENTER_DEVICE(device);
    return give_text(uuid, length, unit->uuid);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    ENTER_DEVICE(device);
    return give_text(name, length, unit->name);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    ENTER_DEVICE(device);
    *index = unit->parent == EVERYWHERE ? index_of(unit) : unit->slot;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    ENTER_DEVICE(device);
    *mode = NVML_FEATURE_ENABLED;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    ENTER_DEVICE(device);
    memset(pci, 0, sizeof *pci);
    if (sscanf(unit->pci, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) != 3)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    strcpy(pci->busId, unit->pci);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT,
             pci->domain & 0xFFFF, pci->bus & 0xFF, pci->device & 0xFF);
    pci->pciDeviceId = 0x233010DE;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    ENTER_DEVICE(device);
    if (!unit->total.known && !unit->total1.known)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    memory->total = unit->total1.known ? unit->total1.value : unit->total.value;
    memory->used = unit->used1.known ? unit->used1.value : unit->used.value + unit->reserved.value;
    memory->free = memory->total - memory->used;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    ENTER_DEVICE(device);
    if (memory->version != nvmlMemory_v2)
        return leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (!unit->total.known)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    memory->total = unit->total.value;
    memory->reserved = unit->reserved.value;
    memory->used = unit->used.value;
    memory->free = memory->total - memory->reserved - memory->used;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    ENTER_DEVICE(device);
    utilization->memory = 0;
    return give_number(&utilization->gpu, unit->util);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned *celsius)
{
    ENTER_DEVICE(device);
    if (sensor != NVML_TEMPERATURE_GPU)
        return leave(NVML_ERROR_INVALID_ARGUMENT);
    return give_number(celsius, unit->temperature);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    ENTER_DEVICE(device);
    if (temperature->version != nvmlTemperature_v1)
        return leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    return give_number((unsigned *)&temperature->temperature, unit->temperature);
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
    ENTER_DEVICE(device);
    return give_number(milliwatts, unit->power);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules)
{
    ENTER_DEVICE(device);
    if (!unit->energy.known)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    *millijoules = unit->energy.value;
    return leave(NVML_SUCCESS);
}

/* ---- processes: asked once for the number, once with room for them ---- */

/* A card with MIG on lists the processes of its instances too. */
static int lists(const struct unit *unit, const struct process *process, enum kind kind)
{
    const struct unit *owner = &scene.unit[process->unit];
    return process->kind == kind && (owner == unit || (owner->parent != EVERYWHERE && &scene.unit[owner->parent] == unit));
}

static nvmlReturn_t list_processes(const struct unit *unit, enum kind kind, unsigned *count, void *infos)
{
    if (unit->parent != EVERYWHERE && scene.unit[unit->parent].parent_lists) {
        *count = 0;
        return leave(NVML_SUCCESS);
    }
    unsigned room = *count, found = 0;
    for (int i = 0; i < scene.processes; i++) {
        if (!lists(unit, &scene.process[i], kind))
            continue;
        if (infos && found < room) {
            char *entry = (char *)infos + found * scene.process_info_size;
            memset(entry, 0, scene.process_info_size);
            memcpy(entry, &scene.process[i].info, sizeof(nvmlProcessInfo_t));
        }
        found++;
    }
    *count = found;
    return leave(found > room || (found && !infos) ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

#define PROCESS_LIST(name, kind) \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos) \
    { \
        ENTER_DEVICE(device); \
        return list_processes(unit, kind, count, infos); \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS)

/* ---- MIG ---- */

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    ENTER_DEVICE(device);
    if (unit->parent != EVERYWHERE)
        return leave(NVML_ERROR_INVALID_ARGUMENT);
    *current = *pending = (unsigned)unit->mig;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    ENTER_DEVICE(device);
    *count = unit->mig_max;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *instance)
{
    ENTER_DEVICE(device);
    for (int i = 0; i < scene.units; i++) {
        if (scene.unit[i].parent != (int)(unit - scene.unit) || scene.unit[i].slot != index)
            continue;
        *instance = handle_of(&scene.unit[i]);
        return leave(NVML_SUCCESS);
    }
    return leave(index < unit->mig_max ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT);
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t instance, nvmlDevice_t *device)
{
    ENTER_DEVICE(instance);
    if (unit->parent == EVERYWHERE)
        return leave(NVML_ERROR_INVALID_ARGUMENT);
    *device = handle_of(&scene.unit[unit->parent]);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_instance)
{
    ENTER_DEVICE(device);
    *is_instance = unit->parent != EVERYWHERE;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t instance, unsigned *id)
{
    ENTER_DEVICE(instance);
    return give_number(id, (struct reading){unit->parent != EVERYWHERE, unit->gpu_instance});
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t instance, unsigned *id)
{
    ENTER_DEVICE(instance);
    return give_number(id, (struct reading){unit->parent != EVERYWHERE, unit->compute_instance});
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t instance, nvmlDeviceAttributes_t *attributes)
{
    ENTER_DEVICE(instance);
    if (unit->parent == EVERYWHERE || !unit->gpu_slices)
        return leave(NVML_ERROR_NOT_SUPPORTED);
    memset(attributes, 0, sizeof *attributes);
    attributes->gpuInstanceSliceCount = unit->gpu_slices;
    attributes->computeInstanceSliceCount = unit->compute_slices;
    attributes->memorySizeMB = unit->total.value >> 20;
    return leave(NVML_SUCCESS);
}
