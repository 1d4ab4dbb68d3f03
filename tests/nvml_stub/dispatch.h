/* What every call does first and last. enter...() takes the lock and keeps it on success; leave() gives it back. */
#ifndef GUA_NVML_DISPATCH_H
#define GUA_NVML_DISPATCH_H

#include "scene.h"

nvmlReturn_t initialise(void);
nvmlReturn_t shut_down(void);
nvmlReturn_t enter(const char *call);
nvmlReturn_t enter_unit(const char *call, struct unit *(*find)(const void *), const void *key, struct unit **unit);
nvmlReturn_t leave(nvmlReturn_t result);

/* Ways to find the card or instance of a call; the key is a handle, an index, a UUID, a PCI address. */
struct unit *by_handle(const void *key);
struct unit *by_index(const void *key);
struct unit *by_uuid(const void *key);
struct unit *by_pci(const void *key);

nvmlDevice_t handle_of(const struct unit *unit);
struct unit *card_at(unsigned index);
unsigned index_of(const struct unit *unit);

/* At the top of a call: enter it, or return what the scene says instead. ENTER_UNIT declares `unit`. */
#define ENTER(call) do { nvmlReturn_t r_ = enter(call); if (r_ != NVML_SUCCESS) return r_; } while (0)
#define ENTER_UNIT(find, key) struct unit *unit; do { \
        nvmlReturn_t r_ = enter_unit(__func__, find, key, &unit); if (r_ != NVML_SUCCESS) return r_; } while (0)
#define ENTER_DEVICE(device) ENTER_UNIT(by_handle, (const void *)(device))

#endif
