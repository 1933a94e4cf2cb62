/* Calls of files that fail at the n-th: preloaded (LD_PRELOAD) into a process that works on a store.
 *
 * Counted are calls that open, read, write, sync, cut, map, lock, rename or remove what lies below one of the folders of
 * `faults_watch`. Of those that can fail for the reason that `faults_arm` names, the n-th does; with `lasting` all from
 * then on; with `deadly` the process ends there as `kill -9` ends it, and where it writes after half of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static char folders[2][PATH_MAX];
static long counted, wanted;
static int error_number, lasting, deadly;
static char failed[PATH_MAX + 64];

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void faults_watch(const char *first, const char *second) {
    snprintf(folders[0], sizeof folders[0], "%s", first);
    snprintf(folders[1], sizeof folders[1], "%s", second);
}

void faults_arm(long number, int error, int is_lasting, int is_deadly) {
    __atomic_store_n(&counted, 0, __ATOMIC_SEQ_CST);
    failed[0] = 0;
    error_number = error, lasting = is_lasting, deadly = is_deadly;
    __atomic_store_n(&wanted, number, __ATOMIC_SEQ_CST);
}

long faults_counted(void) { return __atomic_load_n(&counted, __ATOMIC_SEQ_CST); }
const char *faults_failed(void) { return failed; } /* "call path" of the first that failed */

static int lies_below(const char *path) {
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(folders[i]);
        if (length && strncmp(path, folders[i], length) == 0) return 1;
    }
    return 0;
}

/* Whether this call fails: 0, or -1 with errno. `takes_room`: a full disk is a reason for it to. */
static int fails(const char *name, const char *path, int takes_room) {
    long target = __atomic_load_n(&wanted, __ATOMIC_SEQ_CST);
    if (target < 0 || !lies_below(path)) return 0;
    if (error_number == ENOSPC && !takes_room && !deadly) return 0;
    long number = __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST);
    if (target == 0 || number < target || (number > target && !lasting)) return 0;
    if (number == target) snprintf(failed, sizeof failed, "%s %s", name, path);
    if (deadly) return deadly;
    errno = error_number;
    return -1;
}

static void name_file(int fd, char *path) {
    char link[64];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    errno = saved;
}

static int fails_at(const char *name, int fd, int takes_room) {
    if (!folders[0][0]) return 0;
    char path[PATH_MAX];
    name_file(fd, path);
    return fails(name, path, takes_room);
}

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

#define ENTER(name, fd, room)                       \
    int fault = fails_at(#name, fd, room);          \
    if (fault > 0) die();                           \
    if (fault < 0) return -1;

ssize_t write(int fd, const void *data, size_t size) {
    int fault = fails_at("write", fd, 1);
    if (fault > 0) { NEXT(write)(fd, data, size / 2); die(); }
    return fault < 0 ? -1 : NEXT(write)(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    int fault = fails_at("pwrite", fd, 1);
    if (fault > 0) { NEXT(pwrite)(fd, data, size / 2, at); die(); }
    return fault < 0 ? -1 : NEXT(pwrite)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    int fault = fails_at("pwrite", fd, 1);
    if (fault > 0) { NEXT(pwrite64)(fd, data, size / 2, at); die(); }
    return fault < 0 ? -1 : NEXT(pwrite64)(fd, data, size, at);
}
ssize_t read(int fd, void *data, size_t size) { ENTER(read, fd, 0) return NEXT(read)(fd, data, size); }
ssize_t pread(int fd, void *data, size_t size, off_t at) { ENTER(pread, fd, 0) return NEXT(pread)(fd, data, size, at); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at) { ENTER(pread, fd, 0) return NEXT(pread64)(fd, data, size, at); }
int fsync(int fd) { ENTER(fsync, fd, 1) return NEXT(fsync)(fd); }
int fdatasync(int fd) { ENTER(fdatasync, fd, 1) return NEXT(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { ENTER(ftruncate, fd, 1) return NEXT(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { ENTER(ftruncate, fd, 1) return NEXT(ftruncate64)(fd, size); }

void *mmap(void *start, size_t size, int protection, int flags, int fd, off_t at) {
    if (fd >= 0 && folders[0][0] && fails_at("mmap", fd, 0)) {
        if (deadly) die();
        return MAP_FAILED;
    }
    return NEXT(mmap)(start, size, protection, flags, fd, at);
}
void *mmap64(void *start, size_t size, int protection, int flags, int fd, off64_t at) {
    if (fd >= 0 && folders[0][0] && fails_at("mmap", fd, 0)) {
        if (deadly) die();
        return MAP_FAILED;
    }
    return NEXT(mmap64)(start, size, protection, flags, fd, at);
}

#define ENTER_PATH(name, path, room)                \
    int fault = fails(#name, path, room);           \
    if (fault > 0) die();                           \
    if (fault < 0) return -1;
#define MODE()                                      \
    mode_t mode = 0;                                \
    if (flags & (O_CREAT | __O_TMPFILE)) {          \
        va_list more;                               \
        va_start(more, flags);                      \
        mode = va_arg(more, mode_t);                \
        va_end(more);                               \
    }

int open(const char *path, int flags, ...) {
    MODE()
    ENTER_PATH(open, path, flags & O_CREAT)
    return NEXT(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE()
    ENTER_PATH(open, path, flags & O_CREAT)
    return NEXT(open64)(path, flags, mode);
}
int unlink(const char *path) { ENTER_PATH(unlink, path, 0) return NEXT(unlink)(path); }
int rename(const char *from, const char *to) { ENTER_PATH(rename, to, 1) return NEXT(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { ENTER_PATH(mkdir, path, 1) return NEXT(mkdir)(path, mode); }

int flock(int fd, int operation) { ENTER(flock, fd, 0) return NEXT(flock)(fd, operation); }

/* locks of SQLite */
static int lock_file(int fd, int command, void *argument, int is_wide) {
    if (command == F_SETLK || command == F_SETLKW) {
        ENTER(lock, fd, 0)
    }
    return is_wide ? NEXT(fcntl64)(fd, command, argument) : NEXT(fcntl)(fd, command, argument);
}
int fcntl(int fd, int command, ...) {
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return lock_file(fd, command, argument, 0);
}
int fcntl64(int fd, int command, ...) {
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return lock_file(fd, command, argument, 1);
}
