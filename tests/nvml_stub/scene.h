/* A libnvidia-ml.so.1 without a GPU: it answers what a scene file says, through the real structures of nvml.h.
 *
 * The scene is the file named by GUA_NVML_SCENE, else /etc/gua-nvml-scene. No such file: a working driver and no
 * card. It is looked at on every call and read again when its inode, size or mtime changed; replace it by rename.
 *
 * One statement a line, words separated by blanks; # starts a comment line. Sizes are bytes.
 *
 *     driver 570.86.15            driver version                  nvml 12.570.86.15    library version
 *     generation 2                every handle and init made under another number is UNINITIALIZED until
 *                                 nvmlShutdown and nvmlInit: a reloaded driver
 *     process-info-size 40        the driver writes process entries of 40 bytes, as 535.43 to 535.86 did: bindings
 *                                 that expect 24 read rubbish (24 is the default, and right for nvml.h)
 *     card UUID                   begins a card; NVML indexes follow the order of cards
 *     instance SLOT UUID          begins a MIG instance of the last card
 *
 * within a card or instance (what is not given is NOT_SUPPORTED):
 *
 *     name NVIDIA H100 80GB HBM3  pci 00000000:17:00.0
 *     memory TOTAL RESERVED USED  v2 reading as given; the v1 reading counts RESERVED as used
 *     memory1 TOTAL USED          the v1 reading, where it differs from that rule
 *     util PERCENT                temperature CELSIUS     power MILLIWATTS     energy MILLIJOULES
 *     process KIND PID BYTES|na [GPU_INSTANCE COMPUTE_INSTANCE]     KIND: compute, mps, graphics
 *     samples TYPE                the driver keeps utilisation samples, told as values of nvmlValueType_t TYPE
 *     sample MICROSECONDS VALUE   one of them, oldest first; VALUE may be negative or have a point
 *     process-util                the driver samples processes   use PID MICROSECONDS SM_PERCENT   one such sample
 *     gpm                         the card has GPM counters (cards only)
 *     counters TIME GRAPHICS SM   what GPM counted up to now, in any unit: a metric is 100 x its difference / that
 *                                 of TIME (instances; on a card: of the whole card)
 *     mig MAX                     MIG is on, with room for MAX instances
 *     parent-lists                processes of its instances are listed on the card alone (cards only)
 *     ids GPU_INSTANCE COMPUTE_INSTANCE     slices GPU COMPUTE     (instances only)
 *
 * and, before the first card for every caller, within a card for that card only:
 *
 *     error CALL NAME [first N | from N]          CALL returns NVML_ERROR_NAME: always, the first N times, or
 *                                                 from the Nth time on (counted in each process since it last
 *                                                 read the scene; one process list takes two calls)
 *     delay CALL MS [masked] [first N | from N]   CALL sleeps first; masked: with every signal blocked, so that only
 *                                                 SIGKILL helps. It wakes early when the scene changes.
 *
 * CALL is the C name. Without _vN it means every version; nvmlDeviceGetMemoryInfo_v1 is the unversioned one alone;
 * nvmlInit means every way to initialise; * means every call on a card.
 */
#ifndef GUA_NVML_SCENE_H
#define GUA_NVML_SCENE_H

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#define NOBODY 0xFFFFFFFFu
#define NOT_AVAILABLE 0xFFFFFFFFFFFFFFFFull
#define EVERYWHERE (-1)
enum { MAX_UNITS = 512, MAX_PROCESSES = 8192, MAX_RULES = 1024, MAX_SAMPLES = 8192 };
enum kind { COMPUTE, MPS, GRAPHICS };
enum window { ALWAYS, FIRST, FROM };

struct reading { int known; unsigned long long value; };

struct unit {
    int parent; /* index of the card an instance belongs to; EVERYWHERE for a card */
    unsigned slot, mig_max, gpu_instance, compute_instance, gpu_slices, compute_slices;
    int mig, parent_lists, has_samples, has_process_util, has_gpm, has_counters;
    nvmlValueType_t sample_type;
    struct counters { double time, graphics, sm; } counters;
    char uuid[96], name[96], pci[32];
    struct reading total, reserved, used, total1, used1, util, temperature, power, energy;
};

struct process { int unit; enum kind kind; nvmlProcessInfo_t info; };

struct sample { int unit; nvmlSample_t info; };
struct use { int unit; nvmlProcessUtilizationSample_t info; };

struct rule {
    int unit, masked;
    char call[80];
    nvmlReturn_t error;
    long delay_ms;
    enum window window;
    unsigned long limit, seen;
};

struct scene {
    char driver[80], nvml[80];
    unsigned long generation, process_info_size;
    int broken, units, processes, rules, samples, uses;
    struct unit unit[MAX_UNITS];
    struct process process[MAX_PROCESSES];
    struct rule rule[MAX_RULES];
    struct sample sample[MAX_SAMPLES];
    struct use use[MAX_SAMPLES];
};

extern struct scene scene;

/* Read the scene file again if it is not the one last read. */
void scene_refresh(void);
int scene_changed(void);

struct nvml_error { const char *name; nvmlReturn_t code; const char *text; };
extern const struct nvml_error nvml_errors[];

#endif
