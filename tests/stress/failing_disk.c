/* Simulate a failing disk: calls that change a file in a folder fail from the n-th call on.

   STRESS_FOLDER  the folder; if it is not set, no call fails
   STRESS_AT      the number of the first call that fails, counted from 1
   STRESS_LAST    the number of the last call that fails; 0: all later calls fail, too
   STRESS_ERRNO   the number of the error */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int calls;

static int fails(const char *path) {
    const char *folder = getenv("STRESS_FOLDER");
    if (!folder || !path || strncmp(path, folder, strlen(folder)) != 0) return 0;
    int at = atoi(getenv("STRESS_AT")), last = atoi(getenv("STRESS_LAST"));
    int call = atomic_fetch_add(&calls, 1) + 1;
    if (call < at || (last && call > last)) return 0;
    errno = atoi(getenv("STRESS_ERRNO"));
    return 1;
}

static int handle_fails(int handle) {
    if (!getenv("STRESS_FOLDER")) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int handle, const void *data, size_t size) {
    return handle_fails(handle) ? -1 : REAL(write)(handle, data, size);
}

int fsync(int handle) { return handle_fails(handle) ? -1 : REAL(fsync)(handle); }

int ftruncate64(int handle, off64_t size) {
    return handle_fails(handle) ? -1 : REAL(ftruncate64)(handle, size);
}

int rename(const char *from, const char *to) { return fails(to) ? -1 : REAL(rename)(from, to); }

int mkdir(const char *path, mode_t mode) {
    return fails(path) ? -1 : ((int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir"))(path, mode);
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0;
}

#define OPEN(name)                                                      \
    int name(const char *path, int flags, ...) {                        \
        va_list rest;                                                   \
        va_start(rest, flags);                                          \
        mode_t mode = mode_of(flags, rest);                             \
        va_end(rest);                                                   \
        if ((flags & O_ACCMODE) != O_RDONLY && fails(path)) return -1;  \
        return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode); \
    }

OPEN(open)
OPEN(open64)
